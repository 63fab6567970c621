"""Benchmarks: ``python -m benchmarks [--quick] [--json FILE]``. Only ratios within one run are compared."""
