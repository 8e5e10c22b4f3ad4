"""What the lowering of one query works with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from omnigraph_core.spark.query.columns import spark_schema
from omnigraph_core.spark.query.frame import WEIGHT, Frame
from omnigraph_core.spark.query.scan import ROW

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.types import StructType

    from omnigraph_core.plan.estimate import Estimator, IndexFact
    from omnigraph_core.plan.values import Values
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.spark.query.actions import Actions
    from omnigraph_core.spark.query.cells import Cell
    from omnigraph_core.spark.query.joins import Joins
    from omnigraph_core.spark.query.tables import Side, Tables


@dataclass(frozen=True, slots=True)
class Context:
    """One query on one snapshot."""

    actions: Actions
    tables: Tables
    joins: Joins
    estimator: Estimator
    values: Values
    is_weighing: bool
    """The result counts rows: equal ones may be made one that counts as many times."""

    @property
    def catalog(self) -> Catalog:
        return self.estimator.catalog

    def schema(self, frame: Frame) -> StructType:
        """The columns of a frame, without asking Spark."""
        return spark_schema(self.kinds(frame).items())

    def kinds(self, frame: Frame) -> dict[str, pa.DataType]:
        """What the columns of a frame hold, in their order."""
        known = {cell.name: self.tables.types.of(cell) for cell in frame.cells}
        known |= {WEIGHT: pa.int64(), ROW: pa.bool_()}
        return {name: known[name] for name in frame.names}

    def nothing(self, frame: Frame, cells: Iterable[Cell]) -> Frame:
        """No rows, with these cells."""
        rows = self.tables.row(is_there=False).rows
        made = replace(frame, cells=frozenset(cells))
        for field in self.schema(made):
            rows = rows.withColumn(field.name, F.lit(None).cast(field.dataType))
        return made.with_rows(rows)


class SnapshotCounts:
    """What is known of the tables of a snapshot without reading them: their rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def node_count(self, type_name: str) -> int:
        return self._tables.node_count(type_name)

    def edge_count(self, edge_type: str) -> int:
        return self._tables.edge_count(edge_type)

    def distinct_count(self, type_name: str, property: str) -> int | None:
        return None

    def is_kept(self, type_name: str, property: str) -> bool:
        return False

    def indexes(self, type_name: str, property: str) -> tuple[IndexFact, ...]:
        return ()


def of_side(side: Side) -> Frame:
    """A side of a join as what others are joined to."""
    return Frame(side.rows, estimate=side.most)
