"""What commits, branches and reads cost: `python -m benchmarks.commit [--check] [--quick]`."""
