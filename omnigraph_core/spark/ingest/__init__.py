"""Loads spread over executors: parts of the input in, staged versions of tables and one commit out.

Rows are read, checked and written where they are parsed. Keys, which rules about several rows look
at, meet behind Spark's shuffle; whatever may be wrong there the checks of every other write decide.
"""
