"""Queries beyond one machine: a plan comes in, data frames of Spark carry it out."""
