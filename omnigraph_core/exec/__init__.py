"""The executor: compiled expressions over Arrow columns."""
