"""The schema language: text to catalog, and what a catalog means to tables."""
