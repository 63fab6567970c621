"""Exact values: the check that a value can be stored exactly, its encoding, and its decoding."""

# This import comes first: it decides which `proof` module the other modules import.
from ckptfmt._values import compiled as _compiled  # noqa: F401
