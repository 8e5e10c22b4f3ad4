"""Rows merged property by property: rows that both sides updated come in, what each changed out.

A property and the columns that accompany it are one: a vector never goes without its origin. So are
the ends of an edge: an edge between two nodes that nobody has joined is never made. Rows with
values of both sides are made when they are asked for, some at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import equal_rows
from omnigraph_core.schema.arrow import COMPANION_MARK
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.compare.view import RowView


@dataclass(frozen=True, slots=True)
class Triples:
    """The same rows on all three sides, by address."""

    base: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray


@dataclass(frozen=True, slots=True)
class PropertyChanges:
    """For each property and row, who changed it; only where both did, they may disagree."""

    from_theirs: Mapping[str, np.ndarray]
    """The source alone has changed it."""
    in_conflict: Mapping[str, np.ndarray]
    """Both have, and differ."""

    @property
    def is_conflict(self) -> np.ndarray:
        """The rows in which a property is in conflict."""
        found: np.ndarray = np.logical_or.reduce(list(self.in_conflict.values()))
        return found


def compare_properties(
    rows: Triples, base: RowView, ours: RowView, theirs: RowView
) -> PropertyChanges:
    """Who changed which property of rows that are on all sides."""
    taken, divided = {}, {}
    for name, columns in _merged_units(ours).items():
        is_ours = ~equal_rows(base, rows.base, ours, rows.ours, columns)
        is_theirs = ~equal_rows(base, rows.base, theirs, rows.theirs, columns)
        taken[name] = is_theirs & ~is_ours
        both = np.flatnonzero(is_theirs & is_ours)
        divided[name] = np.zeros(len(is_ours), np.bool_)
        if len(both):
            at_ours, at_theirs = rows.ours[both], rows.theirs[both]
            divided[name][both] = ~equal_rows(ours, at_ours, theirs, at_theirs, columns)
    return PropertyChanges(taken, divided)


def _merged_units(view: RowView) -> dict[str, tuple[str, ...]]:
    """Columns that come from one side, by property; those of either end of an edge are of both."""
    units = units_of(view.columns)
    if isinstance(view.type, EdgeType):
        ends = tuple(EDGE_ENDS.values())
        units |= dict.fromkeys(ends, ends)
    return units


def differing(
    ours: RowView, our_addresses: np.ndarray, theirs: RowView, their_addresses: np.ndarray
) -> dict[str, np.ndarray]:
    """For each property, the rows in which the sides do not have the same value."""
    return {
        name: ~equal_rows(ours, our_addresses, theirs, their_addresses, columns)
        for name, columns in units_of(ours.columns).items()
    }


def units_of(columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Columns that go together, by the name of the property; `id` is none.

    >>> units_of(["id", "sku", "drawing", "drawing#uri"])
    {'sku': ('sku',), 'drawing': ('drawing', 'drawing#uri')}
    """
    units: dict[str, tuple[str, ...]] = {}
    for column in columns:
        name = column.partition(COMPANION_MARK)[0]
        if name != "id":
            units[name] = (*units.get(name, ()), column)
    return units


@dataclass(frozen=True, slots=True)
class CombinedRows:
    """Rows of the target that get some properties of the source."""

    ours: np.ndarray
    theirs: np.ndarray
    from_theirs: Mapping[str, np.ndarray]
    """By property, which of the rows get the source's value."""

    def __len__(self) -> int:
        return len(self.ours)


NOTHING_COMBINED = CombinedRows(np.zeros(0, np.uint64), np.zeros(0, np.uint64), {})


def iter_combined(
    rows: CombinedRows, ours: RowView, theirs: RowView, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The rows with the values of both, as many at a time as fit into memory twice."""
    start = 0
    for mine in ours.iter_taken(rows.ours, columns):
        at_theirs = rows.theirs[start : start + mine.num_rows]
        passed = 0
        for other in theirs.iter_taken(at_theirs, columns):
            part = slice(start + passed, start + passed + other.num_rows)
            masks = {name: mask[part] for name, mask in rows.from_theirs.items()}
            yield _combined(mine.slice(passed, other.num_rows), other, masks)
            passed += other.num_rows
        start += mine.num_rows


def _combined(mine: pa.Table, other: pa.Table, masks: Mapping[str, np.ndarray]) -> pa.Table:
    columns = []
    for name in mine.column_names:
        mask = masks.get(name.partition(COMPANION_MARK)[0])
        columns.append(_chosen(mine.column(name), other.column(name), mask))
    return pa.Table.from_arrays(columns, schema=mine.schema)


def _chosen(
    mine: pa.ChunkedArray, other: pa.ChunkedArray, mask: np.ndarray | None
) -> pa.ChunkedArray:
    if mask is None or not mask.any():
        return mine
    if mask.all():
        return other
    # Picked by place: if_else does not know every kind of list.
    both = pa.chunked_array([*mine.chunks, *other.chunks], mine.type)
    places = np.arange(len(mine)) + np.where(mask, len(mine), 0)
    return pc.take(both, pa.array(places))
