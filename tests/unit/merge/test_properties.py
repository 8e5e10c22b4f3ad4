"""Rows merged property by property: which columns go together, and whose value a row gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.view import RowView, StoredColumn
from omnigraph_core.merge.properties import (
    CombinedRows,
    Triples,
    compare_properties,
    differing,
    iter_combined,
    units_of,
)
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.schema.reshape import GraphType
    from omnigraph_core.storage.dataset import Table

CATALOG = compile_schema(
    """
node Part { sku: String @key  name: String?  stock: I64? }
node Road { name: String @key  src: String?  dst: String? }
edge Fits: Part -> Part { note: String? }
"""
)
FITS, PART, ROAD = CATALOG.edges["Fits"], CATALOG.nodes["Part"], CATALOG.nodes["Road"]
FIRST = np.zeros(1, np.uint64)

Row = dict[str, Any]


class Rows(RowView):
    """Rows in memory; where one is, is its number."""

    __slots__ = ("_rows",)

    def __init__(self, type: GraphType, *rows: Row) -> None:
        schema = table_schema(type)
        self._rows = pa.Table.from_pylist([{"id": "1"} | row for row in rows], schema=schema)
        stored = {name: StoredColumn(name, None) for name in schema.names}
        super().__init__(cast("Table", None), type, schema, stored)

    def read_ahead(self, *_: object) -> None:
        """All of them are in memory."""

    def iter_taken(
        self, addresses: np.ndarray | pa.Array, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        names = list(columns or self.columns)
        for address in addresses.tolist():  # each row is a portion of its own
            yield self._rows.slice(address, 1).select(names)


def merged(type: GraphType, base: Row, ours: Row, theirs: Row) -> tuple[Row, set[str]]:
    """The row with values of both, and what is in conflict."""
    mine, other = Rows(type, ours), Rows(type, theirs)
    found = compare_properties(Triples(FIRST, FIRST, FIRST), Rows(type, base), mine, other)
    (row,) = iter_combined(CombinedRows(FIRST, FIRST, found.from_theirs), mine, other)
    in_conflict = {name for name, mask in found.in_conflict.items() if mask.any()}
    assert bool(found.is_conflict.any()) == bool(in_conflict)
    return row.to_pylist()[0], in_conflict


def test_units() -> None:
    columns = ["id", "sku", "plan", "plan#uri", "shape", "shape#origin"]
    assert units_of(columns) == {
        "sku": ("sku",),
        "plan": ("plan", "plan#uri"),
        "shape": ("shape", "shape#origin"),
    }


def test_each_property_for_itself() -> None:
    base = {"sku": "1", "name": "a", "stock": 1}
    row, in_conflict = merged(PART, base, base | {"name": "b"}, base | {"stock": 2})
    assert (row, in_conflict) == ({"id": "1", "sku": "1", "name": "b", "stock": 2}, set())
    _, in_conflict = merged(PART, base, base | {"name": "b"}, base | {"name": "c", "stock": 2})
    assert in_conflict == {"name"}
    row, in_conflict = merged(PART, base, base | {"name": None}, base | {"name": None})
    assert (row["name"], in_conflict) == (None, set())


@each(
    ("ours", "theirs", "ends", "in_conflict"),
    [
        ("b1", "a2", None, {"src", "dst"}),  # an edge from b to 2 would be nobody's
        ("b1", "b2", None, {"src", "dst"}),
        ("b2", "b2", "b2", set()),
        ("a1", "b2", "b2", set()),
        ("b1", "a1", "b1", set()),
    ],
)
def test_the_ends_of_an_edge_are_one(
    ours: str, theirs: str, ends: str | None, in_conflict: set[str]
) -> None:
    base = {"src": "a", "dst": "1", "note": "x"}
    sides = [base | dict(zip(("src", "dst"), side, strict=True)) for side in (ours, theirs)]
    row, found = merged(FITS, base, sides[0] | {"note": "y"}, sides[1])
    assert (found, row["note"]) == (in_conflict, "y")
    if ends is not None:
        assert row["src"] + row["dst"] == ends


def test_properties_of_a_node_that_are_called_as_the_ends_are_two() -> None:
    base = {"name": "1", "src": "a", "dst": "1"}
    row, in_conflict = merged(ROAD, base, base | {"src": "b"}, base | {"dst": "2"})
    assert (row["src"], row["dst"], in_conflict) == ("b", "2", set())


def test_what_two_inserted_rows_differ_in() -> None:
    one, other = {"src": "a", "dst": "1"}, {"src": "a", "dst": "2"}
    found = differing(Rows(FITS, one), FIRST, Rows(FITS, other), FIRST)
    assert {name for name, mask in found.items() if mask.any()} == {"dst"}
