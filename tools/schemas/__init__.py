"""The JSON Schemas of `docs/schemas`, generated from the definitions and limits of the package."""
