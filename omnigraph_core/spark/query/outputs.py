"""From columns that Spark carried to those of a result: what to select, what to make of it.

Properties that nothing but the result reads are fetched last, for the rows that are returned, if
these are few; else they come along with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.scalars import arrow_column
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.result_schema import object_properties
from omnigraph_core.query.typed import Aggregate, EntityKind, NodeValue, Rrf
from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.spark.query.cells import Cell, cell_of, cells_in, id_of
from omnigraph_core.spark.query.columns import restored
from omnigraph_core.storage.lookup import find_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.spark.query.cells import CellTypes

LATE_ROWS: Final = 10_000
"""Rows whose properties are fetched when they are known."""


def column_cells(ir: QueryIR, catalog: Catalog) -> frozenset[Cell]:
    """The cells that the columns of a result are made from."""
    found: set[Cell] = set()
    for column in ir.columns:
        found.update(cells_of(column.expr, catalog))
    return frozenset(found)


def cells_of(expr: TypedExpr, catalog: Catalog) -> frozenset[Cell]:
    """The cells that a column of a result is made from; a node is shown with its properties."""
    if not isinstance(expr, NodeValue):
        return frozenset(cells_in((expr,)))
    names = ("id", *object_properties(catalog.nodes[expr.type_name]))
    return frozenset(Cell(expr.variable, name) for name in names)


def is_late(cell: Cell) -> bool:
    """Whether a cell can be fetched by the id of what it belongs to."""
    return isinstance(cell.source, str) and cell != id_of(cell.variable)


@dataclass(frozen=True, slots=True)
class Outputs:
    """How the columns of a result are made of rows that Spark returns."""

    read: ReadPlan
    types: CellTypes
    values: Values
    made: Mapping[TypedExpr, str] = field(default_factory=dict)
    """Columns of what no single row of a match has: aggregates and fused ranks."""
    late: frozenset[Cell] = frozenset()

    def names(self, catalog: Catalog) -> list[str]:
        """The columns that are needed of the rows."""
        found: dict[str, None] = {}
        for column in self.read.plan.ir.columns:
            expr = column.expr
            if expr in self.made:
                found[self.made[expr]] = None
            elif not is_given(expr):
                cells = cells_of(expr, catalog)
                found.update((self._carrier(cell).name, None) for cell in sorted(cells, key=_name))
        return list(found)

    def table(self, rows: pa.Table, graph: GraphData) -> pa.Table:
        """The result, of exactly the schema of the read."""
        columns = _Columns(self, rows, _fetched(self.late, self.types, rows, graph))
        schema = self.read.schema
        arrays = [columns.of(column.expr, graph.catalog) for column in self.read.plan.ir.columns]
        fitted = [
            array if array.type == kind else array.cast(kind)
            for array, kind in zip(arrays, schema.types, strict=True)
        ]
        return pa.Table.from_arrays(fitted, schema=schema)

    def _carrier(self, cell: Cell) -> Cell:
        return id_of(cell.variable) if cell in self.late else cell


class _Columns:
    """The columns of some rows."""

    def __init__(self, outputs: Outputs, rows: pa.Table, fetched: Mapping[Cell, pa.Array]) -> None:
        self._outputs = outputs
        self._rows = rows
        self._fetched = fetched

    def of(self, expr: TypedExpr, catalog: Catalog) -> pa.Array:
        outputs = self._outputs
        if expr in outputs.made:
            return self._column(outputs.made[expr], _kind(expr))
        if is_given(expr):
            return arrow_column(outputs.values.of(expr), expr.type, self._rows.num_rows)
        if not isinstance(expr, NodeValue):
            return self._cell(cell_of(expr))
        node = catalog.nodes[expr.type_name]
        names = ("id", *object_properties(node))
        parts = [self._cell(Cell(expr.variable, name)) for name in names]
        fields = [
            pa.field(
                name, part.type, nullable=name != "id" and node.properties[name].type.is_nullable
            )
            for name, part in zip(names, parts, strict=True)
        ]
        mask = parts[0].is_null() if parts[0].null_count else None
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)

    def _cell(self, cell: Cell) -> pa.Array:
        found = self._fetched.get(cell)
        return self._column(cell.name, self._outputs.types.of(cell)) if found is None else found

    def _column(self, name: str, kind: pa.DataType) -> pa.Array:
        return restored(_whole(self._rows.column(name)), kind)


def _fetched(
    cells: Iterable[Cell], types: CellTypes, rows: pa.Table, graph: GraphData
) -> dict[Cell, pa.Array]:
    """The cells of rows whose ids are known, read where they are kept."""
    by_variable: dict[str, list[Cell]] = {}
    for cell in cells:
        by_variable.setdefault(cell.variable, []).append(cell)
    found: dict[Cell, pa.Array] = {}
    for variable, wanted in by_variable.items():
        kind, type_name = types.bound_to(variable)
        dense = graph.nodes(type_name) if kind is EntityKind.NODE else graph.edges(type_name)
        ids = _whole(rows.column(id_of(variable).name))
        names = [str(cell.source) for cell in wanted]
        stored = find_rows(dense.table, "id", ids, ["id", *names])
        places = pc.index_in(ids, _whole(stored.column("id")), skip_nulls=True)
        found |= {
            cell: _whole(stored.column(name)).take(places)
            for cell, name in zip(wanted, names, strict=True)
        }
    return found


def _kind(expr: TypedExpr) -> pa.DataType:
    assert isinstance(expr, Aggregate | Rrf)
    return arrow_type(expr.type)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _name(cell: Cell) -> str:
    return cell.name
