"""Result rows and their columns: values are fetched last, for the rows that are left.

Rows of a match, or one per group, come in; a table of exactly the result's schema goes out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.exec.evaluate import column_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.ir.nodes import ReturnColumn
    from omnigraph_core.query.typed import TypedExpr


_CLAUSE: Final = "return"
_FEW: Final = 1_024
"""Rows whose values are not worth counting."""
_PORTION_ROWS: Final = 2**16


@dataclass(frozen=True, slots=True)
class Rows:
    """Result rows on their way: what they are bound to, and values no single row has.

    `made` holds aggregates and ranks by the expression they are the value of.
    """

    frame: Frame
    made: Mapping[TypedExpr, pa.Array] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return self.frame.length

    def take(self, places: np.ndarray) -> Rows:
        """The rows at these places, in that order."""
        if not self.made:
            return Rows(self.frame.take(places))
        wanted = pa.array(places)
        made = {expr: column.take(wanted) for expr, column in self.made.items()}
        return Rows(self.frame.take(places), made)

    def slice(self, start: int, end: int | None) -> Rows:
        """The rows from `start` up to `end`, as far as there are any."""
        end = self.length if end is None else min(end, self.length)
        start = min(start, end)
        if start == 0 and end == self.length:
            return self
        made = {expr: column.slice(start, end - start) for expr, column in self.made.items()}
        return Rows(self.frame.slice(start, end), made)

    def column(self, run: Run, expr: TypedExpr) -> pa.Array:
        """The value of an expression in each row."""
        found = self.made.get(expr) if self.made else None
        return column_of(run, expr, self.frame) if found is None else found


def project(run: Run, columns: Sequence[ReturnColumn], rows: Rows) -> pa.Table:
    """The result: one column per expression, of the types the schema promises.

    Raises:
        QueryStopped: the guard says so, asked between portions of rows.
    """
    if rows.length <= _FEW:
        return _table(run, columns, rows)
    portions: list[pa.Table] = []
    for start in range(0, rows.length, _PORTION_ROWS):
        run.guard.check()
        portion = _table(run, columns, rows.slice(start, start + _PORTION_ROWS))
        run.guard.hold(portion.nbytes, _CLAUSE)
        portions.append(portion)
    return portions[0] if len(portions) == 1 else pa.concat_tables(portions)


def _table(run: Run, columns: Sequence[ReturnColumn], rows: Rows) -> pa.Table:
    schema = run.schema
    arrays = [rows.column(run, column.expr) for column in columns]
    for place, (array, type) in enumerate(zip(arrays, schema.types, strict=True)):
        if array.type != type:
            arrays[place] = array.cast(type)
    return pa.Table.from_arrays(arrays, schema=schema)
