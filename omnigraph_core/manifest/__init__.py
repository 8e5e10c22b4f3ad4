"""The catalog of a branch: which table versions are visible together, and how that changes."""
