"""The nouns of FORMAT.md: what each file holds, and where it lies."""
