"""One bulk load, or its floor, in a process of its own: seconds and peak memory on stdout.

The floor reads plain rows with pyarrow and writes the same columns with Lance: no ids from keys, no
checks, no commit. Both read every row once and write every column once.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.json as pj

from benchmarks.write.data import SCHEMA
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.dataset import DATA_STORAGE_VERSION


def load(data: Path, target: Path) -> None:
    Omnigraph.init(str(target), SCHEMA).load(data / "records.jsonl", mode="append")


def floor(data: Path, target: Path) -> None:
    catalog = compile_schema(SCHEMA)
    for type in (*catalog.nodes.values(), *catalog.edges.values()):
        rows = pj.read_json(data / f"{type.name}.jsonl")
        columns = [_column(rows, field) for field in table_schema(type)]
        lance.write_dataset(
            pa.table(columns, schema=table_schema(type)),
            str(target / type.name),
            data_storage_version=DATA_STORAGE_VERSION,
        )


def _column(rows: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if field.name == "id":
        own = rows.schema.names[0] == "name"
        return rows["name"] if own else pa.array(range(len(rows)), pa.int64()).cast(pa.string())
    return rows[field.name].cast(field.type)


def main() -> None:
    work, data, target = sys.argv[1:]
    start = time.perf_counter()
    {"load": load, "floor": floor}[work](Path(data), Path(target))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
