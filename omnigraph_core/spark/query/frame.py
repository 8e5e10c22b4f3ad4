"""Rows of a match on Spark: a data frame with a column per cell, and what is known of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from omnigraph_core.spark.query.scan import ROW

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from omnigraph_core.spark.query.cells import Cell

WEIGHT: Final = "#weight"
"""How many times a row counts; null if that is more than 64 bits can say."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Some rows; `rows` is None for what every match begins with, one row that binds nothing."""

    rows: DataFrame | None
    cells: frozenset[Cell] = frozenset()
    estimate: float = 1.0
    """About how many rows there are."""
    is_weighted: bool = False
    nullable: frozenset[str] = frozenset()
    """Variables that may be null."""

    @property
    def names(self) -> list[str]:
        """Of all columns: there is always one."""
        cells = sorted(cell.name for cell in self.cells)
        weights = [WEIGHT] if self.is_weighted else []
        return [*cells, *weights] or [ROW]

    def with_rows(self, rows: DataFrame, cells: Iterable[Cell] | None = None) -> Frame:
        """The same with other rows; only these cells of them, if any are given."""
        frame = self if cells is None else replace(self, cells=frozenset(cells))
        if frame.names == [ROW]:
            return replace(frame, rows=rows.select(F.lit(True).alias(ROW)))
        return replace(frame, rows=rows.select(*map(column, frame.names)))

    def weighted(self, rows: DataFrame, factor: Column) -> Frame:
        """The same with other rows, each counting so many times more."""
        weight = F.try_multiply(column(WEIGHT), factor) if self.is_weighted else factor
        frame = replace(self, is_weighted=True)
        return frame.with_rows(rows.withColumn(WEIGHT, weight.cast("bigint")))


UNIT: Final = Frame(None)


def column(name: str) -> Column:
    """A column by its name, whatever is in it."""
    return F.col(f"`{name}`")
