"""Values that a merged schema has no place for: a side of a table comes in, a conflict goes out.

A property that one side dropped is gone after the merge. Values that the other side has written to
it since the base would go unseen: that is for people to decide, as it is for whole types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.changes import changed_rows
from omnigraph_core.compare.view import RowView
from omnigraph_core.merge.model import MergeConflict, MergeConflictKind
from omnigraph_core.merge.properties import units_of
from omnigraph_core.merge.sides import side_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from omnigraph_core.compare.changes import ChangedRows
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.merge.sides import Side
    from omnigraph_core.schema.document import SchemaDocument

_NAMED: Final = 3
"""Rows that a message names."""


def find_lost(
    label: str,
    word: str,
    side: Side,
    entry: TableEntry,
    base: tuple[Side, TableEntry] | None,
    *,
    common: SchemaDocument | None,
    compare: Callable[[RowView | None, RowView, Sequence[str]], ChangedRows] = changed_rows,
) -> MergeConflict | None:
    """The conflict if rows that a side has written would lose values.

    Args:
        label: the table's key, as users know it.
        word: what the side is called.
        base: None if the base has no such table.
        common: the newest document that base and side both descend from.
        compare: finds the rows that were written.
    """
    names = _homeless(side, entry)
    if not names:
        return None
    after = RowView.of(side.open(entry), side.type_of(entry))
    before = None
    if base is not None:
        seen = side_of(side.context, base[0].snapshot, side.snapshot.schema, common=common)
        before = seen.view(base[1])
    units = units_of(after.columns)
    columns = [column for name in names for column in units[name]]
    found = compare(before, after, columns)
    count, ids = _valued(after.iter_taken(found.after[~found.deleted], ["id", *columns]))
    return _conflict(label, word, names, count, ids) if count else None


def _homeless(side: Side, entry: TableEntry) -> list[str]:
    """The properties whose values are in no column of the merged type."""
    merged = side.merged_type(entry)
    if merged is None:
        return []
    kept = {source.column for source in side.sources(entry, merged).values()}
    return [name for name in side.type_of(entry).properties if name not in kept]


def _valued(portions: Iterable[pa.Table]) -> tuple[int, list[str]]:
    """How many rows have a value in one of the columns after `id`, and which come first."""
    count = 0
    ids: list[str] = []
    for rows in portions:
        has_value = np.zeros(rows.num_rows, np.bool_)
        for name in rows.column_names[1:]:
            has_value |= rows.column(name).is_valid().to_numpy()
        places = np.flatnonzero(has_value)
        first = rows.column("id").take(pa.array(places[: _NAMED - len(ids)], pa.int64()))
        ids += first.to_pylist()
        count += len(places)
    return count, ids


def _conflict(
    label: str, word: str, names: Sequence[str], count: int, ids: Sequence[str]
) -> MergeConflict:
    listed = ", ".join(f"`{name}`" for name in names)
    rows = ", ".join(repr(id) for id in ids)
    more = f" and {count - len(ids)} more" if count > len(ids) else ""
    message = (
        f"{word} has written values to {listed}, in {rows}{more}, and the merged schema has no "
        f"such property; have it on both sides or on none, and merge again"
    )
    kind = MergeConflictKind.SCHEMA_CONFLICT
    return MergeConflict(label, None, kind, message, properties=tuple(names))
