"""Result rows and their columns: values are fetched last, for the rows that are left.

Rows of a match, or one per group, come in; a table of exactly the result's schema goes out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.evaluate import column_of
from omnigraph_core.query.result_schema import object_properties
from omnigraph_core.query.typed import NodeValue, PropertyValue
from omnigraph_core.storage.lookup import spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.ir.nodes import ReturnColumn
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.types import PropType


_CLAUSE: Final = "return"
_FEW: Final = 1_024
"""Rows whose values are not worth counting, unless they are wide."""
_PORTION_ROWS: Final = 2**16
_PORTION_BYTES: Final = 64 << 20
_NEGLIGIBLE: Final = 4 << 20
"""Bytes of a column in a portion that are not worth counting before they are there."""


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
        QueryStopped: the guard says so, asked between portions of rows, and before values are
            fetched that are known to be large.
    """
    if rows.length <= _FEW and _sizes(run, columns, rows) is None:
        return _table(run, columns, rows)
    portions: list[pa.Table] = []
    for part in _portions(run, columns, rows):
        run.guard.check()
        portion = _table(run, columns, part)
        run.guard.hold(portion.nbytes, _CLAUSE)
        portions.append(portion)
    return portions[0] if len(portions) == 1 else pa.concat_tables(portions)


def _portions(run: Run, columns: Sequence[ReturnColumn], rows: Rows) -> Iterator[Rows]:
    """The rows in stretches whose values can be fetched at once."""
    for start in range(0, rows.length, _PORTION_ROWS):
        part = rows.slice(start, start + _PORTION_ROWS)
        sizes = _sizes(run, columns, part)
        if sizes is None:
            yield part
            continue
        for begin, end in spans(sizes, _PORTION_BYTES):
            yield part.slice(begin, end)


def _sizes(run: Run, columns: Sequence[ReturnColumn], rows: Rows) -> np.ndarray | None:
    """Bytes of each row, as far as is known before it is made; None if all take next to nothing.

    What is in memory is known exactly, and has to fit. The rest is a guess that only says how many
    rows to fetch at once.
    """
    known: np.ndarray | int = 0
    guessed = 0.0
    for column in columns:
        expr = column.expr
        if not isinstance(expr, PropertyValue | NodeValue) or expr in rows.made:
            continue
        dense, numbers = run.dense(expr.variable), rows.frame.numbers[expr.variable]
        for name in _wide_names(run, expr, rows.length):
            measured = dense.measure(name, numbers, _NEGLIGIBLE)
            if isinstance(measured, float):
                guessed += measured
            else:
                known = known + measured
    if isinstance(known, int):
        is_little = guessed * rows.length <= _NEGLIGIBLE
        return None if is_little else np.full(rows.length, int(guessed) + 1)
    run.guard.expect(int(known.sum()), _CLAUSE)
    return known + int(guessed)


def _wide_names(run: Run, expr: PropertyValue | NodeValue, length: int) -> Sequence[str]:
    """The columns behind an expression whose values differ in length."""
    if isinstance(expr, PropertyValue):
        return (expr.property,) if _is_wide(expr.type) else ()
    node = run.graph.catalog.nodes[expr.type_name]
    shown = object_properties(node)
    if length > _FEW:
        run.dense(expr.variable).preload(("id", *shown))
    return [name for name in shown if _is_wide(node.properties[name].type)]


def _is_wide(type: PropType) -> bool:
    return type.is_string or type.is_list


def _table(run: Run, columns: Sequence[ReturnColumn], rows: Rows) -> pa.Table:
    schema = run.schema
    arrays = [rows.column(run, column.expr) for column in columns]
    for place, (array, type) in enumerate(zip(arrays, schema.types, strict=True)):
        if array.type != type:
            arrays[place] = array.cast(type)
    return pa.Table.from_arrays(arrays, schema=schema)
