"""The target's rows looked up in the columns of a schema they are not stored in yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.compare.view import RowView
from omnigraph_core.merge.view import MergedView
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.reshape import reshape
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = compile_schema("node Part { sku: String @key  size: I32?  mark: String? }").nodes["Part"]
AFTER = compile_schema(
    """
    node Part { sku: String @key  size: I64?  label: String?  grade: I64 @default(5) }
    node Bin { code: String @key }
    """
)
PART, BIN = "node:Part", "node:Bin"


@pytest.fixture
def view(tmp_path: Path) -> MergedView:
    """Parts a, b and c as they are stored, looked at as they will be; there are no bins."""
    store = open_store(str(tmp_path))
    store.create_root()
    rows = pa.table(
        {
            "id": ["a", "b", "c"],
            "sku": ["a", "b", "c"],
            "size": pa.array([1, 2, None], pa.int32()),
            "mark": ["x", None, "y"],
        },
        schema=table_schema(BEFORE),
    )
    table = stage_append(create_table(store, "nodes/part", table_schema(BEFORE)), rows)
    assert table is not None
    part = AFTER.nodes["Part"]
    renamed = {"sku": "sku", "size": "size", "mark": "label"}
    seen = RowView.of(table, part, reshape(BEFORE, part, renamed))
    types = {PART: part, BIN: AFTER.nodes["Bin"]}
    return MergedView(lambda key: seen if key == PART else None, types)


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("id", pa.array(["a", "z"]), ["a"]),
        ("label", pa.array(["y", None, "z"], pa.utf8()), ["c"]),
        ("size", pa.array([2, 2**40, None], pa.int64()), ["b"]),
        ("grade", pa.array([5], pa.int64()), ["a", "b", "c"]),
        ("grade", pa.array([6], pa.int64()), []),
    ],
)
def test_rows(view: MergedView, column: str, values: pa.Array, found: list[str]) -> None:
    rows = view.rows(PART, column, values, ("sku", "id", "size"))
    assert rows.column_names == ["sku", "id", "size"]
    assert rows.column("size").type == pa.int64()
    assert sorted(rows.column("id").to_pylist()) == found


def test_all_rows(view: MergedView) -> None:
    rows = view.scan(PART, ("id", "grade", "label"))
    assert rows.to_pydict() == {
        "id": ["a", "b", "c"],
        "grade": [5, 5, 5],
        "label": ["x", None, "y"],
    }
    assert view.count(PART) == 3


def test_a_table_that_is_not_there(view: MergedView) -> None:
    assert view.rows(BIN, "id", pa.array(["b"]), ("id",)).num_rows == 0
    assert view.scan(BIN, ("id", "code")).to_pydict() == {"id": [], "code": []}
    assert view.count(BIN) == 0
    assert view.present(BIN, pa.array(["b"])).to_pylist() == [False]


def test_what_was_looked_at(view: MergedView) -> None:
    assert view.read == frozenset()
    view.count(BIN)
    view.present(PART, pa.array(["a"]))
    assert view.read == {PART, BIN}
