"""Writing records, and publishing them."""
