"""Lines of versions of a table, mutated at random, and a comparison that reads all and loops."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import MISSING, ChangedRows
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import build_catalog
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.fragments import StagedFragments, current_fragments, layout
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import ADDRESS, find_where
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import (
    stage_append,
    stage_delete_addresses,
    stage_overwrite,
)
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable
    from pathlib import Path

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.schema.catalog import NodeType
    from omnigraph_core.storage.dataset import Table

SCHEMA: Final = """
node Part {
  sku: String @key
  name: String?
  stock: I64?
  weight: F64?
  scale: F32?
  tags: [String]?
  sizes: [F64]?
  shape: Vector(3)?
  made: Date?
  seen: DateTime?
  ok: Bool?
  drawing: Blob?
}
"""
NAN: Final = float("nan")
Row = dict[str, Any]


def part_type(text: str = SCHEMA) -> NodeType:
    return build_catalog(parse_schema(text)).nodes["Part"]


PART: Final = part_type()
COLUMNS: Final = table_schema(PART)

VALUES: Final[dict[str, list[Any]]] = {
    "name": [None, "", "bolt", "nut", "é"],
    "stock": [None, 0, 7, -(2**63)],
    "weight": [None, 0.0, -0.0, NAN, 1.5],
    "scale": [None, 0.0, -0.0, 2.5],
    "tags": [None, [], [""], ["m3"], ["m3", "m4"]],
    "sizes": [None, [], [0.0], [-0.0], [1.0, NAN]],
    "shape": [None, [0.0, 0.0, 1.0], [-0.0, 0.0, 1.0]],
    "made": [None, 0, 20_000],
    "seen": [None, 0, 1_700_000_000_001],
    "ok": [None, True, False],
    "drawing": [None, b"", b"line", b"lime", b"long " * 20_000, b"lon_ " * 20_000],
    "drawing#uri": [None, "s3://bucket/drawing"],
}


def some_row(chance: random.Random, id: str) -> Row:
    return {"id": id, "sku": id, **{name: chance.choice(VALUES[name]) for name in VALUES}}


def rows_of(items: Iterable[Row], schema: pa.Schema = COLUMNS) -> pa.Table:
    listed = list(items)
    columns = [_array([item.get(field.name) for item in listed], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: list[Any], type: pa.DataType) -> pa.Array:
    counted = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}.get(type)
    return pa.array(values, type) if counted is None else pa.array(values, counted).view(type)


def new_line(root: Path | str, location: str = "nodes/parts") -> Table:
    store = open_store(str(root))
    store.create_root()
    return create_table(store, location, COLUMNS)


def mutate(chance: random.Random, table: Table, other: Table) -> Table:
    """The table after something that happens to tables, or as it is."""
    known: list[str] = table.read(["id"]).column("id").to_pylist()
    some = chance.sample(known, min(len(known), chance.randrange(4)))
    new = sorted({f"{chance.randrange(200):03}" for _ in range(chance.randrange(1, 8))})
    fresh = [some_row(chance, id) for id in new if id not in known]
    match chance.choice(["append", "upsert", "again", "delete", "at", "compact", "index", "all"]):
        case "append":
            staged = stage_append(table, rows_of(fresh))
        case "upsert":
            staged = stage_upsert(table, rows_of([*fresh, *(some_row(chance, id) for id in some)]))
        case "again":  # the same content in other places
            staged = stage_upsert(
                table, table.read(where=pc.field("id").isin(pa.array(some, pa.utf8())))
            )
        case "delete":
            staged = stage_delete_keys(table, pa.array(some, pa.utf8()))
        case "at":
            places = addresses_of(table)
            staged = stage_delete_addresses(table, places[: chance.randrange(2)])
        case "compact":
            staged = compact(table, target_rows=chance.choice([4, 16, 1000]))
        case "index" if known:
            staged = stage_index(table, IndexRequest("id", SegmentKind.BTREE, "id_btree"))
        case "all" if chance.random() < 0.3:
            left = [id for id in known if chance.random() < 0.7]
            staged = stage_overwrite(
                table, table.read(where=pc.field("id").isin(pa.array(left, pa.utf8())))
            )
        case _:
            staged = with_shared_file(table, other, known)
    return staged or table


def with_shared_file(table: Table, other: Table, known: Iterable[str]) -> Table | None:
    """With a file of another line, as where both took what was written once."""
    if other.location != table.location:
        return None
    mine = {state.files for state in fragment_states(table)}
    written = {fragment.id: fragment for fragment in current_fragments(other)}
    for state in fragment_states(other):
        if state.files not in mine and state.deletion is None:
            ids = find_where(other, None, ["id"], has_addresses=True)
            inside = pc.equal(pc.shift_right(ids.column(ADDRESS), 32), state.id)
            if not set(ids.filter(inside).column("id").to_pylist()) & set(known):
                text = json.dumps({**written[state.id].to_json(), "id": 0})
                rows = written[state.id].physical_rows
                staged = StagedFragments(layout(other), (text,), rows, other.staged_since)
                return stage_append(table, staged)
    return None


def addresses_of(table: Table) -> pa.Array:
    return find_where(table, None, [], has_addresses=True).column(ADDRESS).combine_chunks()


def exact(value: Any) -> Any:
    """Something that is equal exactly where values are."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    return [exact(item) for item in value] if isinstance(value, list) else value


def content(view: RowView, columns: Iterable[str] | None = None) -> dict[str, Row]:
    """Every row by its id, as it is seen."""
    addresses = addresses_of(view.table)
    names = list(view.columns if columns is None else dict.fromkeys(["id", *columns]))
    read = view.take(addresses, names).to_pylist()
    places = addresses.to_pylist()
    found = {
        row["id"]: {**{name: exact(row[name]) for name in names}, ADDRESS: place}
        for row, place in zip(read, places, strict=True)
    }
    assert len(found) == len(read)
    return found


def check_changes(
    found: ChangedRows, before: RowView | None, after: RowView | None, *columns: str
) -> None:
    """Compare with what reading all rows tells."""
    compared = columns or None
    old = {} if before is None else content(before, compared)
    new = {} if after is None else content(after, compared)
    changed = sorted(
        id for id in old.keys() | new.keys() if _unplaced(old.get(id)) != _unplaced(new.get(id))
    )
    assert found.ids.to_pylist() == changed
    assert len(found) == len(changed)
    assert found.before.tolist() == [_place(old.get(id)) for id in changed]
    assert found.after.tolist() == [_place(new.get(id)) for id in changed]
    assert found.inserted.tolist() == [id not in old for id in changed]
    assert found.deleted.tolist() == [id not in new for id in changed]
    assert found.updated.tolist() == [id in old and id in new for id in changed]
    stayed = sorted(old.keys() - set(changed))
    places = np.array([old[id][ADDRESS] for id in stayed], np.uint64)
    assert found.unchanged_at(places).tolist() == [new[id][ADDRESS] for id in stayed]


def _unplaced(row: Row | None) -> Row | None:
    return None if row is None else {**row, ADDRESS: None}


def _place(row: Row | None) -> int:
    return int(MISSING) if row is None else int(row[ADDRESS])
