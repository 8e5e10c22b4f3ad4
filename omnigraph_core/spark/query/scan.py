"""Reading a table on executors: portions of its fragments come in, rows as Spark carries them out.

Every task opens the table at its one version. Conditions are asked of the storage as far as it can
tell, and then checked on every row it gives, by the engine's own comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.conditions import Operands, truth_of
from omnigraph_core.plan.access import conjuncts
from omnigraph_core.query.typed import PropertyValue, TextMatch
from omnigraph_core.spark.query.cells import cells_in
from omnigraph_core.spark.query.columns import carried
from omnigraph_core.spark.query.searching import SearchedRows, Sought
from omnigraph_core.spark.query.tasks import bordered
from omnigraph_core.storage.dataset import Table, open_table
from omnigraph_core.storage.fragment_rows import iter_found
from omnigraph_core.storage.session import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.spark.query.cells import Search

FROM: Final = "#from"
TO: Final = "#to"
"""The ends of an edge as it is followed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table at one version, for whoever is to open it."""

    root: str
    location: str
    version: int

    def open(self) -> Table:
        """
        Raises:
            ObjectNotFound: the version, or the table, is not in the store.
        """
        return _opened(self)


@lru_cache(maxsize=8)
def _store(root: str) -> Store:
    return open_store(root)


@lru_cache(maxsize=64)
def _opened(place: Place) -> Table:
    return open_table(_store(place.root), place.location, place.version)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a table: which rows, and which values of each."""

    place: Place
    portions: tuple[tuple[int, ...], ...]
    """Fragments by task."""
    outputs: tuple[tuple[str, str | Search], ...]
    """Columns of the rows that come out, and what is in each: a column of the table or a search."""
    sought: Sought
    conditions: tuple[TypedCondition, ...] = ()
    where: str | None = None
    """The same conditions as the storage understands them, or some of them."""
    is_both_ways: bool = False
    """Of edges: each is followed from either end, one from a node to itself once."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: numbers of portions come in, their rows go out."""
        return bordered(self._rows(batches), self.variables)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in self._found(self.portions[number]):
                    yield from self._given(rows)

    def _found(self, portion: Sequence[int]) -> Iterator[SearchableRows]:
        plain = tuple(c for c in conjuncts(self.conditions) if not _searches(c))
        searching = tuple(c for c in conjuncts(self.conditions) if _searches(c))
        names = self._columns()
        for batch in iter_found(self.place.open(), names, portion, self.where):
            rows = SearchableRows(batch, self.sought).satisfying(plain).satisfying(searching)
            if rows.batch.num_rows:
                yield rows

    def _columns(self) -> tuple[str, ...]:
        """The columns of the table that are looked at; there is always one."""
        names = [_column_of(source) for _, source in self.outputs]
        names += [_column_of(cell.source) for cell in cells_in(self.conditions)]
        return tuple(dict.fromkeys(names)) or ("id",)

    def _given(self, rows: SearchableRows) -> Iterator[pa.RecordBatch]:
        columns = {name: carried(rows.column(source)) for name, source in self.outputs}
        if not columns:
            columns = {ROW: pa.repeat(pa.scalar(True), rows.batch.num_rows)}
        yield pa.record_batch(columns)
        if self.is_both_ways:
            turned = {**columns, FROM: columns[TO], TO: columns[FROM]}
            back = pa.record_batch(turned).filter(pc.not_equal(columns[FROM], columns[TO]))
            if back.num_rows:
                yield back


ROW: Final = "#row"
"""The column of rows that carry nothing: Spark knows no rows without columns."""


class SearchableRows:
    """Rows of a table with what searches find in them."""

    def __init__(self, batch: pa.RecordBatch, sought: Sought) -> None:
        self.batch = batch
        self._sought = sought
        self._searched = SearchedRows(batch, sought)
        self._found: dict[Search, pa.Array] = {}

    def column(self, source: str | Search) -> pa.Array:
        if isinstance(source, str):
            return self.batch.column(source)
        if source not in self._found:
            self._found[source] = self._searched.column(source)
        return self._found[source]

    def satisfying(self, conditions: Sequence[TypedCondition]) -> SearchableRows:
        """Those of the rows for which all conditions are true."""
        rows = self
        for condition in conditions:
            if not rows.batch.num_rows:
                break
            operands = Operands(rows.batch.num_rows, rows._value)
            truth = truth_of(condition, operands, self._sought.values)
            if not truth.all():
                rows = rows._kept(pa.array(truth))
        return rows

    def _value(self, expr: TypedExpr) -> pa.Array:
        if isinstance(expr, PropertyValue):
            return self.batch.column(expr.property)
        assert isinstance(expr, TextMatch)
        return self.column(expr)

    def _kept(self, mask: pa.BooleanArray) -> SearchableRows:
        kept = SearchableRows(self.batch.filter(mask), self._sought)
        kept._found = {search: found.filter(mask) for search, found in self._found.items()}
        return kept


def _column_of(source: str | Search) -> str:
    return source if isinstance(source, str) else source.field.property


def _searches(condition: TypedCondition) -> bool:
    return any(not isinstance(cell.source, str) for cell in cells_in((condition,)))
