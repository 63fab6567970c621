"""Programs for the maintainers of this project. They are not installed."""
