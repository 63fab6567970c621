"""The JSON Schemas of `docs/schemas`, declared in Python from what the package itself checks."""
