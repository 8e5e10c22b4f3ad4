"""Merges and diffs by many tasks: rows that differ are found, decided about and written by them."""
