"""One load, or the bare job, in a process of its own: seconds to begin and for it, peak memory.

The memory is that of the driver's Python, where everything that is collected would be.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.write.data import SCHEMA
from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS: Final = {
    "Person": "name string, age bigint, bio string, vector array<float>",
    "Company": "name string, city string",
    "Knows": "src string, dst string, since string, weight double",
    "WorksAt": "src string, dst string, role string",
}


def main() -> None:
    work, cores, data, target = sys.argv[1:]
    begin = time.perf_counter()
    session = _session(int(cores)) if int(cores) else None
    start = time.perf_counter()
    if work == "bare" and session is not None:
        _bare(session, Path(data), Path(target))
    else:
        graph = Omnigraph.init(target, SCHEMA)
        graph.load(Path(data, "records.jsonl"), mode="append", engine=work)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told = {"start_seconds": start - begin, "seconds": seconds, "peak_bytes": peak}
    print(json.dumps(told))


def _session(cores: int) -> SparkSession:
    """A session whose workers have begun: what is measured is the work."""
    from omnigraph_core.spark.runner import SparkRunner
    from omnigraph_core.spark.session import open_session

    session = open_session(master=f"local[{cores},3]")
    SparkRunner(session).map(_nothing, range(cores * 2), name="begin")
    return session


def _nothing(number: int) -> int:
    import lance  # noqa: F401 - every worker has it before the clock starts

    return number


def _bare(session: SparkSession, data: Path, target: Path) -> None:
    for name, columns in _COLUMNS.items():
        rows = session.read.schema(columns).json(str(data / f"{name}.jsonl"))
        rows.write.parquet(str(target / name))


if __name__ == "__main__":
    main()
