"""Measurements of the whole, run by `make bench`; not installed."""
