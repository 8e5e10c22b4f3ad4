"""Real tables of every type of property, to export from."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.write.export import export_jsonl, select_tables
from omnigraph_core.write.export_parquet import ExportedFile, export_parquet
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType

CATALOG = compile_schema("""
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
  place: Vector(3)? @embed("name")
  words: [String]?
  days: [Date]?
  times: [DateTime]?
  numbers: [F32]?
}

node Note {
  text: String?
}

edge Watches: Sensor -> Sensor {
  weight: F64?
  sketch: Blob?
}
""")
SENSOR, NOTE = CATALOG.nodes["Sensor"], CATALOG.nodes["Note"]
WATCHES = CATALOG.edges["Watches"]
MOMENT = 1769854272345

FULL: dict[str, tuple[Any, Any]] = {
    "name": ("full", "full"),
    "kind": ("outdoor", "outdoor"),
    "isOn": (False, False),
    "small": (-(2**31), -(2**31)),
    "large": (2**63 - 1, 2**63 - 1),
    "count": (2**32 - 1, 2**32 - 1),
    "total": (2**64 - 1, 2**64 - 1),
    "ratio": (0.1, 0.1),
    "value": (5e-324, 5e-324),
    "day": (dt.date.max, "9999-12-31"),
    "seen": (MOMENT, "2026-01-31T10:11:12.345Z"),
    "picture": (b"\x00\xff", "base64:AP8="),
    "place": ([0.1, -1.0, 0.0], [0.1, -1.0, 0.0]),
    "words": (["a", "", 'ü"\n'], ["a", "", 'ü"\n']),
    "days": ([dt.date.min], ["0001-01-01"]),
    "times": ([MOMENT, -1], ["2026-01-31T10:11:12.345Z", "1969-12-31T23:59:59.999Z"]),
    "numbers": ([], []),
}


class Tables:
    """The tables of the catalog in a store, by table key."""

    def __init__(self, root: Path) -> None:
        self.root = root
        store = open_store(str(root))
        store.create_root()
        self.by_key = {
            type.table_key: create_table(store, type.table_key.replace(":", "/"), schema)
            for type, schema in ((item, table_schema(item)) for item in select_tables(CATALOG))
        }

    def append(self, type: GraphType, rows: list[dict[str, Any]]) -> None:
        self._set(type, stage_append(self.open(type.table_key), arrow(type, rows)))

    def upsert(self, type: GraphType, rows: list[dict[str, Any]]) -> None:
        self._set(type, stage_upsert(self.open(type.table_key), arrow(type, rows)))

    def delete(self, type: GraphType, ids: list[str]) -> None:
        self._set(type, stage_delete_keys(self.open(type.table_key), pa.array(ids, pa.utf8())))

    def compact(self, type: GraphType) -> None:
        self._set(type, compact(self.open(type.table_key)))

    def open(self, table_key: str) -> Table:
        return self.by_key[table_key]

    def jsonl(self, *types: GraphType, **options: int) -> bytes:
        return b"".join(export_jsonl(types or select_tables(CATALOG), self.open, **options))

    def lines(self, *types: GraphType) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.jsonl(*types).splitlines()]

    def parquet(self, *types: GraphType) -> tuple[ExportedFile, ...]:
        selected = types or select_tables(CATALOG)
        return export_parquet(selected, self.open, self.root / "out")

    def _set(self, type: GraphType, table: Table | None) -> None:
        assert table is not None
        self.by_key[type.table_key] = table


def arrow(type: GraphType, rows: list[dict[str, Any]]) -> pa.Table:
    schema = table_schema(type)
    return pa.table(
        [_column([row.get(field.name) for row in rows], field.type) for field in schema],
        schema=schema,
    )


def _column(values: list[Any], type: pa.DataType) -> pa.Array:
    if type == pa.date64():
        return pa.array(values, pa.int64()).view(type)
    if pa.types.is_list(type) and type.value_type == pa.date64():
        return pa.array(values, pa.list_(pa.int64())).cast(type)
    return pa.array(values, type)


def sensor(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "name": id, **values}


def note(id: str, text: str | None = None) -> dict[str, Any]:
    return {"id": id, "text": text}
