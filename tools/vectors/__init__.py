"""The vectors of `tests/vectors`: small checkpoints, good and broken, each with a twin in JSON."""
