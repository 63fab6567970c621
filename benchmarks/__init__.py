"""Measurements: ``python -m benchmarks [--quick] [--json FILE]``. Ratios within one run, nothing absolute."""
