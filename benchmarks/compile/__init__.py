"""How long compiling takes: `python -m benchmarks.compile [--check] [--json]`."""
