"""Tests of the data source that need no session."""
