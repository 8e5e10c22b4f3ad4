"""Checking a graph: what it says of itself against what is there. Mends nothing."""
