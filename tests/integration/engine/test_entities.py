"""`entity_at`: one row as JSON, whatever its types."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.staged import stage_append
from tests.support.graphs import publish

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
node Sensor {
  name: String @key
  kind: enum(indoor, outdoor)?
  isOn: Bool?
  small: I32?
  large: I64?
  count: U32?
  total: U64?
  ratio: F32?
  value: F64?
  day: Date?
  seen: DateTime?
  picture: Blob?
  place: Vector(3)?
  words: [String]?
  days: [Date]?
  times: [DateTime]?
  flags: [Bool]?
  numbers: [U64]?
}
"""
SENSOR = "node:Sensor"
MOMENT = dt.datetime(2026, 1, 31, 10, 11, 12, 345_000, tzinfo=dt.UTC)
MILLISECONDS = round(MOMENT.timestamp() * 1000)

CASES: dict[str, tuple[Any, Any]] = {
    "kind": ("outdoor", "outdoor"),
    "isOn": (False, False),
    "small": (-(2**31), -(2**31)),
    "large": (2**63 - 1, 2**63 - 1),
    "count": (2**32 - 1, 2**32 - 1),
    "total": (2**64 - 1, 2**64 - 1),
    "ratio": (0.5, 0.5),
    "value": (-1e300, -1e300),
    "day": (dt.date(1969, 12, 31), "1969-12-31"),
    "seen": (MILLISECONDS, "2026-01-31T10:11:12.345Z"),
    "picture": (b"\x00\xff", "base64:AP8="),
    "place": ([0.5, -1.0, 0.0], [0.5, -1.0, 0.0]),
    "words": (["a", "", "ü"], ["a", "", "ü"]),
    "days": ([dt.date(2026, 2, 1)], ["2026-02-01"]),
    "times": ([MILLISECONDS], ["2026-01-31T10:11:12.345Z"]),
    "flags": ([True, False], [True, False]),
    "numbers": ([0, 2**64 - 1], [0, 2**64 - 1]),
}


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """A sensor with every value, one with none, and odd ids."""
    og = Omnigraph.init(str(tmp_path), SCHEMA)
    snapshot = og.snapshot()
    table = og.table(snapshot, SENSOR)
    full = {name: given for name, (given, _) in CASES.items()}
    rows = [
        {"id": "full", "name": "full", **full},
        *({"id": id, "name": id} for id in ("bare", "", "it's", "a\nb", "ü😀", "x" * 10_000)),
    ]
    columns = [
        pa.array([row.get(field.name) for row in rows], pa.int64()).cast(field.type)
        if field.type == pa.date64()
        else _array([row.get(field.name) for row in rows], field.type)
        for field in table.schema
    ]
    staged = stage_append(table, pa.table(columns, schema=table.schema))
    assert staged is not None
    publish(og, snapshot, {SENSOR: staged}, TableOperation.APPEND)
    return og


def _array(values: list[Any], type: pa.DataType) -> pa.Array:
    if type == pa.list_(pa.field("item", pa.date64())):
        return pa.array(values, pa.list_(pa.int64())).cast(type)
    return pa.array(values, type)


@pytest.mark.parametrize("name", CASES)
def test_a_value_of_every_type(og: Omnigraph, name: str) -> None:
    found = og.entity_at(SENSOR, "full", version=2)
    assert found is not None
    assert found[name] == CASES[name][1]
    assert json.loads(json.dumps(found[name])) == CASES[name][1]


def test_nothing_is_null(og: Omnigraph) -> None:
    assert og.entity_at(SENSOR, "bare", version=2) == {
        "id": "bare",
        "name": "bare",
        **dict.fromkeys(CASES),
    }


@pytest.mark.parametrize("id", ["", "it's", "a\nb", "ü😀", "x" * 10_000])
def test_any_id(og: Omnigraph, id: str) -> None:
    found = og.entity_at(SENSOR, id, version=2)
    assert found is not None
    assert found["id"] == id
    assert og.entity_at(SENSOR, f"{id}?", version=2) is None
    og.optimize()
    assert og.entity_at(SENSOR, id, version=3) == found, "the same by the index"
