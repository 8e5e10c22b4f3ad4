"""The digest of rows: the same for the same rows, whatever order and parts they come in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa

from omnigraph_core.spark.source.digest import hash_rows, join_hashes
from tests.support.cases import each

CHANCE = np.random.default_rng(3)
ROWS = pa.RecordBatch.from_pydict(
    {
        "id": pa.array([f"k{n % 50}" for n in range(200)]),
        "n": pa.array([None if n % 7 == 0 else n for n in range(200)], pa.int64()),
        "x": pa.array([n / 3 for n in range(200)], pa.float32()),
        "b": pa.array([n % 2 == 0 for n in range(200)]),
        "d": pa.array([Decimal(n) for n in range(200)], pa.decimal128(20, 0)),
        "day": pa.array([dt.date(2020, 1, 1 + n % 9) for n in range(200)]),
        "at": pa.array([n * 1000 for n in range(200)], pa.timestamp("us", "UTC")),
        "raw": pa.array([None if n % 5 == 0 else bytes([n]) for n in range(200)]),
        "tags": pa.array([None if n % 9 == 0 else ["a"] * (n % 4) for n in range(200)]),
    }
)


def test_order_and_parts_do_not_matter() -> None:
    whole = hash_rows(ROWS)
    shuffled = ROWS.take(pa.array(CHANCE.permutation(200)))
    assert hash_rows(shuffled) == whole
    parts = [hash_rows(shuffled.slice(start, 33)) for start in range(0, 200, 33)]
    assert join_hashes(parts) == whole
    assert join_hashes([]) == hash_rows(ROWS.slice(0, 0)) == 0


@each("column", ROWS.schema.names)
def test_every_value_matters(column: str) -> None:
    place = ROWS.schema.get_field_index(column)
    values = ROWS.column(place)
    order = np.arange(200)
    order[[11, 12]] = [12, 11]  # the same values, at other rows
    swapped = ROWS.set_column(place, ROWS.schema.field(place), values.take(pa.array(order)))
    assert hash_rows(swapped) != hash_rows(ROWS)
    fewer = pa.array(
        [v if n != 11 else None for n, v in enumerate(values.to_pylist())], values.type
    )
    assert hash_rows(ROWS.set_column(place, ROWS.schema.field(place), fewer)) != hash_rows(ROWS)


def test_what_looks_alike_is_not() -> None:
    def hashed(**columns: pa.Array) -> int:
        return hash_rows(pa.RecordBatch.from_pydict(columns))

    kinds = pa.list_(pa.utf8())
    lists = [[["a", "b"]], [["b", "a"]], [["a"], ["b"]], [["ab"]], [[]], [None], [["a", "b", "b"]]]
    seen = [hashed(x=pa.array(item, kinds)) for item in lists]
    assert len(set(seen)) == len(seen)
    assert hashed(x=pa.array(["a"]), y=pa.array(["b"])) != hashed(
        x=pa.array(["b"]), y=pa.array(["a"])
    )
    assert hashed(x=pa.array(["a", "a"])) != hashed(x=pa.array(["a"]))
    assert hashed(x=pa.array(["a" * 1000 + "b"])) != hashed(x=pa.array(["a" * 1000 + "c"]))
