"""The data model of FORMAT.md: the content of each file, and its path."""
