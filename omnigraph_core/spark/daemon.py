"""The process that Python workers are forked from, with everything they need already imported.

Set as `spark.python.daemon.module`. Spark's own imports after the fork and collects the garbage of
eighty thousand objects after each task; here both are done once. Lance is imported and not used:
its threads would not be there after a fork.
"""

from __future__ import annotations

import gc
import importlib
import warnings
from typing import Final

from pyspark.daemon import manager

_NEEDED: Final = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pandas",
    "omnigraph_core.spark.worker",
    "omnigraph_core.storage.dataset",
)


def main() -> None:
    """Import, and fork workers until Spark has enough of them."""
    # Forking is all that this process does, and it does so before the first use.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for name in _NEEDED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
