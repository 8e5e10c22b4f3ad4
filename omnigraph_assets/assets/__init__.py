"""Assets of a graph: its tables, what is derived from them, maintenance and checks."""
