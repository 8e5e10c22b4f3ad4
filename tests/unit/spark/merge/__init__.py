"""Tests of merges by tasks that need no session."""
