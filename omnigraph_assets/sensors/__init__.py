"""Sensors: they react to dropped files, commits, branches, schemas and failures."""
