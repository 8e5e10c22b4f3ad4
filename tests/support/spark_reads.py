"""Ways a read can take on Spark: what decides between them is size, and here it is set."""

from __future__ import annotations

from omnigraph_core.spark.query import collect, expand, fuse, joins, result, tables
from tests.support.read_ways import Way

MANY = 10**12
SPARK_WAYS = (
    Way("Spark"),
    Way(
        "Spark, everything is large",
        (
            (joins, "BROADCAST_BYTES", -1),
            (expand, "BROADCAST_BYTES", -1),
            (joins, "FEW_ROWS", -1),
            (tables, "TASK_ROWS", 1),
            (fuse, "FEW_RANKED", -1),
            (result, "LATE_ROWS", -1),
            (collect, "_FEW_ROWS", -1),
        ),
    ),
    Way(
        "Spark, tables are large and matches are small",
        (
            (joins, "BROADCAST_BYTES", -1),
            (expand, "BROADCAST_BYTES", -1),
            (joins, "FEW_ROWS", MANY),
            (result, "LATE_ROWS", MANY),
        ),
    ),
)
