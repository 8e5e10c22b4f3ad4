"""Backfills on Spark against a provider with a limit."""
