"""Reading and verifying what was published."""
