"""The query language: text to checked queries, lint, parameters, result columns."""
