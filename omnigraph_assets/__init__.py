"""The Dagster code location: a graph's catalog as assets, and everything that keeps them current.

No graph logic of its own: whatever is decided about data is decided by the engine.
"""
