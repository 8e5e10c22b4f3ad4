"""Rows of two versions of a table: which of them differ, at a cost that follows the difference."""
