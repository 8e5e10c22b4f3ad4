"""Writes: records in, constraints checked, table versions staged, one commit out."""
