"""Rows by bucket: what is put comes back, and equal values meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.spark.ingest.buckets import bucket_of, bucket_of_tuples, put_keys, read_bucket
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.session import open_store

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 5


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(open_store(str(tmp_path)), "job")


def test_rows_come_back_by_bucket(scratch: Scratch) -> None:
    ids = pa.table({"id": [f"n{number}" for number in range(100)], "row": range(100)})
    few = pa.table({"id": ["x", "y"]})
    buckets = bucket_of(ids.column("id"), COUNT)
    first = put_keys(scratch, "keys", {"ids": (ids, buckets)}, COUNT)
    second = put_keys(scratch, "keys", {"few": (few, np.array([3, 3], np.uint16))}, COUNT)
    assert first.name != second.name
    seen = []
    for bucket in range(COUNT):
        found = read_bucket(scratch, [(7, first), (8, second)], bucket)
        for part, rows in found.get("ids", ()):
            assert part == 7
            assert set(bucket_of(rows.column("id"), COUNT)) == {bucket}
            seen += rows.column("row").to_pylist()
        assert ("few" in found) == (bucket == 3)
    assert sorted(seen) == list(range(100))


def test_equal_values_meet_however_they_are_cut() -> None:
    ids = [f"n{number}" for number in range(50)]
    whole = bucket_of(pa.array(ids), COUNT)
    parted = bucket_of(pa.chunked_array([ids[:7], [], ids[7:]], pa.utf8()), COUNT)
    sliced = bucket_of(pa.array(["x", *ids]).slice(1), COUNT)
    assert whole.tolist() == parted.tolist() == sliced.tolist()
    assert len(set(whole.tolist())) == COUNT


def test_tuples_are_told_apart_by_all_their_values() -> None:
    left, right = pa.array(["a"] * 50), pa.array([str(number) for number in range(50)])
    assert len(set(bucket_of_tuples([left, right], COUNT).tolist())) == COUNT
    assert (
        bucket_of_tuples([left, left], COUNT).tolist()
        == [int(bucket_of_tuples([left, left], COUNT)[0])] * 50
    )


def test_nothing_is_left_behind(scratch: Scratch, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"]})
    put_keys(scratch, "keys", {"ids": (rows, np.zeros(1, np.uint16))}, COUNT)
    assert scratch.names("keys")
    scratch.clear()
    assert not scratch.names("keys")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
