"""A small log to grow, and the shortest ways to do so."""

from __future__ import annotations

import pyarrow as pa

from omnigraph_core.storage.log import Log, read, try_append

SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("number", pa.uint64())])


def rows(*numbers: int) -> pa.Table:
    return pa.table({"name": [f"n{at}" for at in numbers], "number": numbers}, schema=SCHEMA)


def grown(log: Log, *numbers: int) -> Log:
    appended = try_append(log, rows(*numbers))
    assert appended is not None
    return appended


def numbers_in(log: Log) -> list[int]:
    return read(log, ["number"])["number"].to_pylist()
