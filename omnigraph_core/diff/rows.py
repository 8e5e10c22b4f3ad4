"""Which rows of a table differ, and how: a pair of tables comes in, changes of rows go out by id.

Both sides are compared as rows of the later type, so that a change of schema is no change of rows.
What is held is where the changed rows are; rows themselves are read when their changes are asked
for, one portion of each side at a time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.changes import changed_rows
from omnigraph_core.compare.equality import equal_columns
from omnigraph_core.compare.view import RowView
from omnigraph_core.diff.model import ChangeOp, Endpoints, EntityChange, TableChanges
from omnigraph_core.exec.json_rows import plain_objects
from omnigraph_core.interruption import pause
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.arrow import COMPANION_MARK, table_schema
from omnigraph_core.schema.catalog import EDGE_ENDS
from omnigraph_core.schema.migrate.column_types import WIDENINGS
from omnigraph_core.schema.reshape import is_same_shape, reshape
from omnigraph_core.write.export import exported_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from omnigraph_core.compare.changes import ChangedRows
    from omnigraph_core.compare.workers import Comparing
    from omnigraph_core.diff.model import ChangeFilter
    from omnigraph_core.diff.tables import TablePair, TypedTable
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.schema.reshape import GraphType

_WINDOW: Final = 4096
"""Changes that are put together at once: rows of three kinds are read side by side."""
_ENDS: Final = tuple(EDGE_ENDS.values())
_OPS: Final = tuple(ChangeOp)
_ONLY_ID: Final = ("id",)


@dataclass(frozen=True, slots=True)
class _Content:
    """What is told of one row beside its id."""

    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    properties: tuple[str, ...] = ()


_NOTHING: Final = _Content()


@dataclass(frozen=True, slots=True)
class _Views:
    """One side: its rows as they are there, and as they are compared; one view where it can be."""

    own: RowView
    seen: RowView


@dataclass(frozen=True, slots=True)
class TableDiff:
    """The changed rows of one table that a filter lets through."""

    pair: TablePair
    before: _Views | None
    after: _Views | None
    changed: ChangedRows
    ops: np.ndarray
    """Per changed row its place among `ChangeOp`."""
    places: np.ndarray
    """Which of the changed rows are asked for, ascending."""

    @property
    def counts(self) -> TableChanges:
        found = np.bincount(self.ops[self.places], minlength=len(_OPS)).tolist()
        return TableChanges(self.pair.type.table_key, *found)

    def iter_changes(
        self, manifest_version: int, *, has_values: bool, most: int | None = None
    ) -> Iterator[EntityChange]:
        """The changes by id, `most` of them; rows are read as they are asked for."""
        places = self.places[:most]
        for start in range(0, len(places), _WINDOW):
            pause()
            yield from self._window(
                places[start : start + _WINDOW], manifest_version, has_values=has_values
            )

    def _window(
        self, places: np.ndarray, manifest_version: int, *, has_values: bool
    ) -> Iterator[EntityChange]:
        ops, is_edge = self.ops[places], self.pair.kind is EntityKind.EDGE
        named = (self.pair.type.table_key, self.pair.kind, self.pair.type.name)
        contents = [
            self._contents(op, places[ops == at], has_values=has_values)
            for at, op in enumerate(_OPS)
        ]
        ids = self.changed.ids.take(pa.array(places)).to_pylist()
        for id, at in zip(ids, ops.tolist(), strict=True):
            content = next(contents[at])
            ends = _endpoints(content) if is_edge else None
            told = content if has_values else _NOTHING
            yield EntityChange(
                *named,
                id,
                _OPS[at],
                manifest_version,
                ends,
                told.before,
                told.after,
                told.properties,
            )

    def _contents(
        self, op: ChangeOp, places: np.ndarray, *, has_values: bool
    ) -> Iterator[_Content]:
        if not has_values and self.pair.kind is EntityKind.NODE:
            return repeat(_NOTHING)
        if op is ChangeOp.UPDATE and has_values:
            return self._updates(places)
        columns = None if has_values else _ENDS
        if op is ChangeOp.DELETE:
            return (_Content(before=row) for row in self._rows(self.before, places, columns))
        return (_Content(after=row) for row in self._rows(self.after, places, columns))

    def _rows(
        self, side: _Views | None, places: np.ndarray, columns: Sequence[str] | None
    ) -> Iterator[dict[str, object]]:
        assert side is not None
        wanted = exported_columns(side.own.type) if columns is None else columns
        addresses = self.changed.before if side is self.before else self.changed.after
        for rows in side.own.iter_taken(addresses[places], wanted):
            yield from _objects(rows)

    def _updates(self, places: np.ndarray) -> Iterator[_Content]:
        """Both sides of each row, and the names of what differs in how they are compared."""
        assert self.before is not None
        assert self.after is not None
        old, new = self.changed.before[places], self.changed.after[places]
        sides = ((self.before, old), (self.after, new))
        self.before.own.read_ahead(old, self.after.own, new)
        views = [(side.seen, where) for side, where in sides]
        views += [(side.own, where) for side, where in sides if side.own is not side.seen]
        portions = _aligned([view.iter_taken(where) for view, where in views])
        for seen_before, seen_after, *others in portions:
            rest = iter(others)
            own_before = seen_before if self.before.own is self.before.seen else next(rest)
            own_after = seen_after if self.after.own is self.after.seen else next(rest)
            yield from map(
                _Content,
                _objects(own_before.select(exported_columns(self.before.own.type))),
                _objects(own_after.select(exported_columns(self.after.own.type))),
                _differing(seen_before, seen_after),
            )


def compare_tables(
    context: GraphContext,
    pair: TablePair,
    filter: ChangeFilter,
    workers: Comparing | None = None,
) -> TableDiff:
    """Find the rows of a pair that differ.

    Args:
        workers: who compares; None: this process.

    Raises:
        ObjectNotFound: a version is gone.
    """
    before, after = _views(context, pair)
    # Without updates among what is asked for, ids alone tell.
    columns = None if filter.wants(ChangeOp.UPDATE) else _ONLY_ID
    compare = changed_rows if workers is None else workers.changed_rows
    changed = compare(
        None if before is None else before.seen, None if after is None else after.seen, columns
    )
    masks = {
        ChangeOp.INSERT: changed.inserted,
        ChangeOp.UPDATE: changed.updated,
        ChangeOp.DELETE: changed.deleted,
    }
    ops = np.select([masks[op] for op in _OPS], range(len(_OPS))).astype(np.int8)
    wanted = np.isin(ops, [at for at, op in enumerate(_OPS) if filter.wants(op)])
    return TableDiff(pair, before, after, changed, ops, np.flatnonzero(wanted))


def _views(context: GraphContext, pair: TablePair) -> tuple[_Views | None, _Views | None]:
    if pair.before is None or pair.after is None:
        return _single(context, pair.before), _single(context, pair.after)
    common = _meeting_type(pair.before.type, pair.after.type, pair.renamed)
    same = {name: name for name in pair.after.type.properties}
    return (
        _seen_as(context, pair.before, common, pair.renamed),
        _seen_as(context, pair.after, common, same),
    )


def _single(context: GraphContext, side: TypedTable | None) -> _Views | None:
    if side is None:
        return None
    view = _own_view(context, side)
    return _Views(view, view)


def _seen_as(
    context: GraphContext, side: TypedTable, common: GraphType, renamed: Mapping[str, str]
) -> _Views:
    own = _own_view(context, side)
    # Views are compared column by column, so the order of columns counts too.
    if is_same_shape(side.type, common, renamed) and own.schema.equals(table_schema(common)):
        return _Views(own, own)
    return _Views(own, RowView.of(own.table, common, reshape(side.type, common, renamed)))


def _own_view(context: GraphContext, side: TypedTable) -> RowView:
    return RowView.of(context.table(side.entry.location, side.entry.physical_version), side.type)


def _meeting_type(before: GraphType, after: GraphType, renamed: Mapping[str, str]) -> GraphType:
    """The later type; properties that were wider before stay so, or equal values would differ."""
    previous = {new: before.properties[old] for old, new in renamed.items()}
    wider = {
        name: replace(prop, type=replace(prop.type, scalar=previous[name].type.scalar))
        for name, prop in after.properties.items()
        if name in previous and _is_wider(previous[name], prop)
    }
    if not wider:
        return after
    return replace(after, properties={**after.properties, **wider})


def _is_wider(before: PropertyDef, after: PropertyDef) -> bool:
    return (
        before.type.is_list == after.type.is_list
        and (
            after.type.scalar,
            before.type.scalar,
        )
        in WIDENINGS
    )


def _objects(rows: pa.Table) -> Iterator[dict[str, object]]:
    return (json.loads(text.as_py()) for text in plain_objects(rows))


def _aligned(streams: Sequence[Iterable[pa.Table]]) -> Iterator[tuple[pa.Table, ...]]:
    """The same rows out of several streams at once, however each of them is cut.

    >>> one, two = pa.table({"a": [1, 2, 3]}), pa.table({"b": [4, 5, 6]})
    >>> pieces = _aligned([[one.slice(0, 2), one.slice(2)], [two.slice(0, 1), two.slice(1)]])
    >>> [[table.num_rows for table in tables] for tables in pieces]
    [[1, 1], [1, 1], [1, 1]]
    """
    sources = [iter(stream) for stream in streams]
    held = [next(source, None) for source in sources]
    while tables := [table for table in held if table is not None]:
        size = min(table.num_rows for table in tables)
        yield tuple(table.slice(0, size) for table in tables)
        held = [
            table.slice(size) if table.num_rows > size else next(source, None)
            for table, source in zip(tables, sources, strict=True)
        ]


def _differing(before: pa.Table, after: pa.Table) -> Iterator[tuple[str, ...]]:
    """Per row the properties that differ; what accompanies a property counts as the property."""
    differs: dict[str, np.ndarray] = {}
    for column, is_equal in equal_columns(before, after).items():
        name = column.partition(COMPANION_MARK)[0]
        differs[name] = ~is_equal | differs.get(name, np.zeros(len(is_equal), bool))
    names = tuple(differs)
    for flags in np.stack(list(differs.values()), axis=1).tolist():
        yield tuple(name for name, is_changed in zip(names, flags, strict=True) if is_changed)


def _endpoints(content: _Content) -> Endpoints:
    row = content.before if content.after is None else content.after
    assert row is not None
    src, dst = (row[name] for name in _ENDS)
    return Endpoints(str(src), str(dst))
