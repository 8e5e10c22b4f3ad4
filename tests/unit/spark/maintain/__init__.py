"""Tests of maintenance by executors that need no session."""
