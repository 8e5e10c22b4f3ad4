"""Vectors by Spark: many tasks ask one provider within its limits, and one commit has the result.

Start with `backfill`. `leases` holds the limits for all tasks, `paid` keeps what was answered.
"""
