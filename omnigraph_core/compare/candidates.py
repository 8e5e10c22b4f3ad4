"""Rows that may have changed, paired by id: rows that two versions do not share come in.

A row that both have under one id is a pair; any other was deleted or inserted. Ids are unique in a
version. However many rows there are, only so many of them are in memory at a time: ids are then
gone through range by range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.constants import COMPARE_ROWS
from omnigraph_core.storage.lookup import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.storage.version_rows import OwnRows

_SAMPLED: Final = 65_536
"""Ids, at most, by which ranges are chosen."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Some rows of two versions, by address; all with ids of one range."""

    deleted_ids: pa.ChunkedArray
    deleted: np.ndarray
    inserted_ids: pa.ChunkedArray
    inserted: np.ndarray
    paired_ids: pa.ChunkedArray
    paired: tuple[np.ndarray, np.ndarray]
    """Where each is in the earlier and in the later version."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """Ids from the first up to, but without, the last; None is open."""

    first: str | None
    last: str | None

    def of(self, rows: pa.Table) -> pa.Table:
        ids = rows.column("id")
        if self.first is not None:
            rows = rows.filter(pc.greater_equal(ids, self.first))
            ids = rows.column("id")
        return rows if self.last is None else rows.filter(pc.less(ids, self.last))


ALL_IDS: Final = IdRange(None, None)


def iter_candidates(
    before: RowView | None, before_own: OwnRows, after: RowView | None, after_own: OwnRows
) -> Iterator[Candidates]:
    """All those rows, at most about COMPARE_ROWS of them at a time."""
    sides = ((before, before_own), (after, after_own))
    count = before_own.count + after_own.count
    if before is not None and after is not None:
        before.read_ahead(before_own.addresses, after, after_own.addresses, ["id"])
    for chosen in _ranges(sides, -(-count // COMPARE_ROWS.value)) if count else ():
        yield paired_by_id(*(_read(view, own, chosen) for view, own in sides))


def _ranges(sides: Sequence[tuple[RowView | None, OwnRows]], count: int) -> list[IdRange]:
    """Ranges of ids with about as many rows each."""
    if count == 1:
        return [ALL_IDS]
    total = sum(own.count for _, own in sides)
    step = -(-total // _SAMPLED)
    sampled = [
        rows.column("id").take(pa.array(np.arange(0, rows.num_rows, step)))
        for view, own in sides
        for rows in _iter_ids(view, own)
    ]
    ids = pa.chunked_array([chunk for column in sampled for chunk in column.chunks], pa.utf8())
    ordered = ids.take(pc.sort_indices(ids))
    places = np.linspace(0, len(ordered), count, endpoint=False).astype(np.int64)[1:]
    bounds = ordered.take(pa.array(places)).unique().to_pylist()
    return [IdRange(*ends) for ends in zip([None, *bounds], [*bounds, None], strict=True)]


def _iter_ids(view: RowView | None, own: OwnRows) -> Iterator[pa.Table]:
    return iter(()) if view is None or not own.count else view.iter_own(own, ["id"])


def _read(view: RowView | None, own: OwnRows, chosen: IdRange) -> pa.Table:
    schema = pa.schema([("id", pa.utf8()), (ADDRESS, pa.uint64())])
    found = [chosen.of(rows).cast(schema) for rows in _iter_ids(view, own)]
    return pa.concat_tables([schema.empty_table(), *found])


def paired_by_id(before: pa.Table, after: pa.Table) -> Candidates:
    """The rows of two versions, given by id and address, as pairs and those without a partner."""
    was, now = (side.column(ADDRESS).to_numpy() for side in (before, after))
    places = pc.index_in(before.column("id"), after.column("id").combine_chunks())
    is_paired = places.is_valid().to_numpy()
    found = places.drop_null().to_numpy()
    is_new = np.ones(len(now), np.bool_)
    is_new[found] = False
    return Candidates(
        deleted_ids=before.column("id").filter(pa.array(~is_paired)),
        deleted=was[~is_paired],
        inserted_ids=after.column("id").filter(pa.array(is_new)),
        inserted=now[is_new],
        paired_ids=before.column("id").filter(pa.array(is_paired)),
        paired=(was[is_paired], now[found]),
    )
