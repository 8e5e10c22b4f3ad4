"""The tables of a snapshot as data frames: what to read and what must hold come in, rows go out.

Spark knows nothing about the size of what Python makes, so every frame is handed on with the most
rows it can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F

from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.plan.access import conjuncts, key_equality
from omnigraph_core.plan.predicates import NO_ROWS, lance_filter
from omnigraph_core.query.checked import Direction
from omnigraph_core.query.typed import All
from omnigraph_core.spark.query.columns import spark_schema
from omnigraph_core.spark.query.scan import FROM, ROW, TO, Place, Reading
from omnigraph_core.storage.portions import fragment_portions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.spark.query.cells import Cell, CellTypes, Search
    from omnigraph_core.spark.query.searching import Sought
    from omnigraph_core.storage.dataset import Table

TASK_ROWS: Final = 1 << 19
"""Rows of a table that one task reads, about: it should have some seconds of work."""
_TEXT_BYTES: Final = 64
_LIST_BYTES: Final = 256
_OTHER_BYTES: Final = 8
"""Of one value, guessed."""


@dataclass(frozen=True, slots=True)
class Side:
    """Rows for one side of a join, and the most there can be of them."""

    rows: DataFrame
    most: float
    width: int
    """Bytes of a row, guessed."""

    @property
    def most_bytes(self) -> float:
        return self.most * self.width


class Tables:
    """The tables of one snapshot, for one query."""

    def __init__(
        self,
        session: SparkSession,
        graph: GraphData,
        types: CellTypes,
        sought: Sought,
        variables: Mapping[str, str],
    ) -> None:
        """Args:
        variables: of the environment, for whoever reads a table.
        """
        self.types = types
        self.sought = sought
        self.variables = variables
        self._session = session
        self._graph = graph

    def seeking(self, sought: Sought) -> Tables:
        """The same tables for other searches."""
        return Tables(self._session, self._graph, self.types, sought, self.variables)

    def node_count(self, type_name: str) -> int:
        return self._graph.snapshot.table(node_table_key(type_name)).row_count

    def edge_count(self, edge_type: str) -> int:
        return self._graph.snapshot.table(edge_table_key(edge_type)).row_count

    def nodes(
        self,
        variable: str,
        cells: Iterable[Cell],
        conditions: Sequence[TypedCondition] = (),
        *,
        key: str | None = None,
    ) -> Side:
        """Nodes that a variable may be bound to.

        Args:
            cells: of that variable; each is a column under its name.
            key: one more column, for the id.
        """
        type_name = self.types.bound_to(variable)[1]
        outputs = self._outputs(cells)
        if key is not None:
            outputs[key] = ("id", pa.utf8())
        most = self._most_found(type_name, conditions)
        table = self._graph.nodes(type_name).table
        return self._read(table, outputs, conditions, most, is_lookup=most < TASK_ROWS)

    def edges(
        self, op: Expand, cells: Iterable[Cell] = (), conditions: Sequence[TypedCondition] = ()
    ) -> Side:
        """Edges as an expand follows them: `FROM`, `TO`, and cells of the edge."""
        ends = ("dst", "src") if op.direction is Direction.IN else ("src", "dst")
        outputs = {FROM: (ends[0], pa.utf8()), TO: (ends[1], pa.utf8()), **self._outputs(cells)}
        is_both = op.direction is Direction.BOTH
        most = self.edge_count(op.edge_type) * (1 + is_both)
        table = self._graph.edges(op.edge_type).table
        return self._read(table, outputs, conditions, most, is_both_ways=is_both)

    def portions(self, variable: str) -> tuple[Place, tuple[tuple[int, ...], ...]]:
        """The table of a variable's nodes, and its fragments by task."""
        table = self._graph.nodes(self.types.bound_to(variable)[1]).table
        return _place(table), tuple(fragment_portions(table, TASK_ROWS))

    def row(self, *, is_there: bool = True) -> Side:
        """One row that carries nothing, or none."""
        rows = self._session.range(1 if is_there else 0).select(F.lit(True).alias(ROW))
        return Side(rows, 1, _OTHER_BYTES)

    def _outputs(self, cells: Iterable[Cell]) -> dict[str, tuple[str | Search, pa.DataType]]:
        found = {cell.name: (cell.source, self.types.of(cell)) for cell in cells}
        return dict(sorted(found.items()))

    def _read(
        self,
        table: Table,
        outputs: Mapping[str, tuple[str | Search, pa.DataType]],
        conditions: Sequence[TypedCondition],
        most: float,
        *,
        is_both_ways: bool = False,
        is_lookup: bool = False,
    ) -> Side:
        where = lance_filter(All(tuple(conditions)), self.sought.values) if conditions else None
        # What an index finds is in few places: one task finds it sooner than many.
        portions = tuple(fragment_portions(table, table.count_rows() if is_lookup else TASK_ROWS))
        if where == NO_ROWS:
            portions, most = (), 0
        reading = Reading(
            _place(table),
            portions,
            tuple((name, source) for name, (source, _) in outputs.items()),
            self.sought,
            tuple(conditions),
            where,
            is_both_ways,
            self.variables,
        )
        kinds = [(name, kind) for name, (_, kind) in outputs.items()] or [(ROW, pa.bool_())]
        numbers = self._session.range(0, len(portions), 1, max(len(portions), 1))
        rows = numbers.mapInArrow(reading, spark_schema(kinds))
        return Side(rows, most, sum(_width(kind) for _, kind in kinds))

    def _most_found(self, type_name: str, conditions: Sequence[TypedCondition]) -> int:
        """Rows that can satisfy the conditions: few if they name ids or keys."""
        node = self._graph.catalog.nodes[type_name]
        most = self.node_count(type_name)
        for condition in conjuncts(conditions):
            found = key_equality(condition, node)
            if found is not None:
                given = self.sought.values.of(found.given)
                most = min(most, len(given) if isinstance(given, tuple) else 1)
        return most


def _place(table: Table) -> Place:
    return Place(table.store.root.text, table.location, table.physical_version)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size * 4)
    if pa.types.is_list(kind):
        return _LIST_BYTES
    return _TEXT_BYTES if pa.types.is_string(kind) else _OTHER_BYTES
