"""Exact values: which values can be stored, their proof and encoding, and decoding them again."""

from ckptfmt._values import compiled as _compiled  # noqa: F401  # first: it decides which `proof` the others import
