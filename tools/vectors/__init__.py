"""The vectors of `tests/vectors`: small valid and invalid checkpoints with their expected content in JSON."""
