"""Rows of a part of the input by number, hash or value: what tasks read of key columns again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.spark.ingest.hashing import Hasher
from omnigraph_core.spark.ingest.inspect import PART, ROW, unified
from omnigraph_core.spark.ingest.keys import HASH, SIDES, claimed_name
from omnigraph_core.write.collect import NUMBER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.spark.ingest.hashing import Hashes
    from omnigraph_core.spark.ingest.keys import PartKeys
    from omnigraph_core.spark.ingest.model import Job

_NO_IDS: Final = pa.array([], pa.utf8())
_NO_ROWS: Final = pa.table({PART: pa.array([], pa.int32()), ROW: pa.array([], pa.int64())})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a part to read the key columns of."""

    keys: PartKeys
    numbers: Mapping[str, np.ndarray]
    """By table key."""
    ends: Mapping[tuple[str, str], np.ndarray]
    """By edge table and side, hashes of ends: all edges there are wanted."""


def read_wanted(job: Job, wanted: Wanted) -> dict[str, pa.Table]:
    """The key columns of wanted rows, by table key."""
    hasher = Hasher(job.seed)
    found = {}
    for key, rows in wanted.keys.read(job).items():
        numbers = rows.column(NUMBER).to_numpy() if NUMBER in rows.column_names else None
        if numbers is None:
            continue
        is_wanted = np.isin(numbers, wanted.numbers.get(key, np.zeros(0, np.int64)))
        for side in SIDES:
            sought = wanted.ends.get((key, side))
            if sought is not None:
                column = rows.column(side)
                valid = column.is_valid().to_numpy()
                is_there = np.zeros(len(valid), np.bool_)
                is_there[valid] = _is_in(hasher.texts(column.filter(pa.array(valid))), sought)
                is_wanted |= is_there
        if is_wanted.any():
            found[key] = rows.filter(pa.array(is_wanted))
    return found


def _is_in(hashes: Hashes, sought: np.ndarray) -> np.ndarray:
    given = np.zeros(len(hashes[0]), HASH)
    given["h1"], given["h2"] = hashes
    (codes, among), count = unified(given, sought)
    is_sought = np.zeros(count, np.bool_)
    is_sought[among] = True
    found: np.ndarray = is_sought[codes]
    return found


def find_hashed_rows(job: Job, task: tuple[PartKeys, str]) -> dict[str, pa.Table]:
    """By table key the rows of a part whose ids have one of the hashes."""
    keys, name = task
    tables, hasher = keys.read(job), Hasher(job.seed)
    found = {}
    for key, sought in job.scratch.read_tables(name).items():
        rows = tables.get(key)
        if rows is not None:
            hashes = np.zeros(sought.num_rows, HASH)
            hashes["h1"], hashes["h2"] = sought.column("h1"), sought.column("h2")
            is_there = _is_in(hasher.texts(rows.column("id")), hashes)
            found[key] = _rows_of(keys.part, rows.filter(pa.array(is_there)).column(NUMBER))
    return found


def _rows_of(part: int, numbers: pa.ChunkedArray) -> pa.Table:
    return pa.table({PART: pa.array(np.full(len(numbers), part, np.int32)), ROW: numbers})


def find_rows_of_part(job: Job, task: tuple[PartKeys, str]) -> dict[str, tuple[pa.Table, pa.Array]]:
    """By section the rows of a part that have one of the values, and ids of refused records."""
    keys, name = task
    tables = keys.read(job)
    found = {}
    for section, sought in job.scratch.read_tables(name).items():
        kind, key, *_ = section.split(" ")
        values, column = sought.column("id"), "src" if kind == "end" else "id"
        rows, claimed = tables.get(key), tables.get(claimed_name(key))
        hits, ids = _NO_ROWS, _NO_IDS
        if rows is not None:
            hit = rows.filter(pc.is_in(rows.column(column), value_set=values)).column(NUMBER)
            hits = _rows_of(keys.part, hit)
        if claimed is not None and kind == "id":
            known = claimed.column("id")
            ids = pc.unique(known.filter(pc.is_in(known, value_set=values)))
        found[section] = hits, ids
    return found
