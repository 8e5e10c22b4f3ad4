"""Commits, branches, tags, time travel and runs over the catalogs."""
