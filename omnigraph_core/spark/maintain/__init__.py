"""Maintenance by executors: compaction, indexes and topology of tables of any size."""
