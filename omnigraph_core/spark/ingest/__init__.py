"""Loads spread over executors: parts of the input in, staged versions of tables and one commit out.

Rows are read, checked and written where they are parsed. What rules about several rows look at goes
by value to buckets; whatever may be wrong there is settled by the checks of every other write.
"""
