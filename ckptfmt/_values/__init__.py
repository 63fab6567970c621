"""Exact values: which values can be stored, their proof and encoding, and decoding them again."""

# First: it decides which `proof` the other modules import.
from ckptfmt._values import compiled as _compiled  # noqa: F401
