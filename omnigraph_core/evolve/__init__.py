"""Bringing the tables of a graph from an accepted schema to the next one."""
