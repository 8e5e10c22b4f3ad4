"""Finding committed rows for statements: a condition or ends of edges come in, rows go out.

Rows come with their addresses. Remembers which tables were looked at, because the commit has to
require that they did not move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.exec.conditions import matches
from omnigraph_core.plan.predicates import NO_ROWS, lance_filter
from omnigraph_core.query.mentions import iter_terms, map_operands
from omnigraph_core.query.typed import PropertyValue
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.storage.lookup import ADDRESS, find_rows, find_where, take_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType

_ID: Final = ("id",)


class Committed:
    """The rows of one snapshot, as the statements of a mutation look for them."""

    def __init__(self, open_table: Callable[[str], Table], values: Values) -> None:
        self._open_table = open_table
        self._values = values
        self._read: set[str] = set()

    @property
    def read(self) -> frozenset[str]:
        """The keys of the tables looked at so far."""
        return frozenset(self._read)

    def whole(self, type: GraphType, where: TypedCondition) -> pa.Table:
        """Every column of the rows that satisfy a condition, blobs included."""
        table, columns = self._table(type.table_key), table_schema(type).names
        condition = _by_id(type, where)
        if lance_filter(condition, self._values) is not None:
            return self._matching(table, condition, columns)
        # All rows must be looked at: first for what the condition is about, then the whole of few.
        found = self._matching(table, condition, _ID).column(ADDRESS)
        return take_rows(table, found, columns).append_column(ADDRESS, found)

    def ids(self, type: GraphType, where: TypedCondition) -> pa.Table:
        """The ids of the rows that satisfy a condition."""
        return self._matching(self._table(type.table_key), _by_id(type, where), _ID)

    def edges_at(self, edge: EdgeType, side: str, nodes: pa.StringArray) -> pa.Table:
        """The ids of the edges that have one of the nodes at an end."""
        table = self._table(edge.table_key)
        return find_rows(table, side, nodes, _ID, has_addresses=True)

    def _table(self, table_key: str) -> Table:
        self._read.add(table_key)
        return self._open_table(table_key)

    def _matching(
        self, table: Table, condition: TypedCondition, columns: Sequence[str]
    ) -> pa.Table:
        where = lance_filter(condition, self._values)
        wanted = tuple(dict.fromkeys((*columns, *_columns_of(condition))))
        if where == NO_ROWS or not table.count_rows():
            return _no_rows(table, wanted)
        found = find_where(table, where, wanted, has_addresses=True)
        return found.filter(matches(condition, found, self._values))


def _by_id(type: GraphType, where: TypedCondition) -> TypedCondition:
    """The condition in terms of `id`, which has an index, where a text key is the same as it."""
    if not isinstance(type, NodeType) or type.key is None or len(type.key) > 1:
        return where
    (key,) = type.key
    if not type.properties[key].type.is_string:
        return where

    def by_id(expr: TypedExpr) -> TypedExpr:
        if isinstance(expr, PropertyValue) and expr.property == key:
            return replace(expr, property="id")
        return expr

    return map_operands(where, by_id)


def _columns_of(condition: TypedCondition) -> list[str]:
    terms = iter_terms((condition,))
    return [term.property for term in terms if isinstance(term, PropertyValue)]


def _no_rows(table: Table, columns: Sequence[str]) -> pa.Table:
    fields = [table.schema.field(name) for name in columns]
    return pa.schema([*fields, pa.field(ADDRESS, pa.uint64())]).empty_table()
