"""Which rows differ between two versions: two views come in, ids and addresses of changes go out.

Only rows that the versions do not share are looked at, and only pairs with the same id are read.
The answer is exact: a row that was written again with equal content has not changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.candidates import Candidates, iter_candidates, paired_by_id
from omnigraph_core.compare.equality import equal_columns
from omnigraph_core.compare.rows import equal_rows
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.runs import is_in
from omnigraph_core.storage.version_rows import NO_ROW, OwnRows, match_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.storage.version_rows import RowMatch, SharedPart

__all__ = ["MISSING", "ChangedRows", "changed_rows", "equal_columns", "equal_rows"]

MISSING: Final = NO_ROW
"""Where a row would be in a version that does not have it."""

_NONE: Final = np.zeros(0, np.uint64)


def changed_rows(
    before: RowView | None,
    after: RowView | None,
    columns: Sequence[str] | None = None,
    *,
    is_exact: bool = True,
) -> ChangedRows:
    """The rows that one version has and the other has not, or not with the same values.

    Args:
        before, after: as rows of the same columns; None where there is no such table.
        columns: those to compare, besides `id`; all without them.
        is_exact: False leaves it open whether a row that was written again has other values: it is
            among the changed ones, and is not read.
    """
    if before is None or after is None:
        return _all_of(before, after)
    check_comparable(before, after)
    chosen = after.columns if columns is None else columns
    compared = [name for name in chosen if name != "id"]
    match = match_rows(before.table, after.table)
    found = [
        _compared(before, after, candidates, compared if is_exact else None)
        for candidates in iter_candidates(before, match.before_own, after, match.after_own)
    ]
    found += _iter_restored(before, after, match, compared)
    return _joined(found, match)


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The rows of two versions with ids of one range that they do not share, found by somebody."""

    before: pa.Table
    """Ids and addresses of those of the earlier version alone."""
    after: pa.Table
    stayed: pa.Table
    """What `changed_in_place` found."""


def changed_among(
    before: RowView | None,
    after: RowView | None,
    known: KnownRows,
    columns: Sequence[str] | None = None,
    *,
    is_exact: bool = True,
    match: RowMatch | None = None,
) -> ChangedRows:
    """What `changed_rows` finds, of rows with ids of one range.

    Args:
        match: how rows of the two correspond, if somebody is to ask where unchanged rows are.
    """
    candidates = paired_by_id(known.before, known.after)
    if before is None or after is None:
        found = _unpaired(candidates)
    else:
        chosen = after.columns if columns is None else columns
        compared = [name for name in chosen if name != "id"]
        found = _compared(before, after, candidates, compared if is_exact else None)
    was, now = (known.stayed.column(name).to_numpy() for name in ("before", "after"))
    return _joined([found, _Found(known.stayed.column("id"), was, now)], match)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What changed between two versions, by ascending id. Arrays are not to be written to."""

    ids: pa.StringArray
    before: np.ndarray
    """uint64, where each row is in the earlier version; MISSING if it is not there."""
    after: np.ndarray
    """The same for the later one."""
    _match: RowMatch | None = field(default=None, repr=False)
    _same: tuple[np.ndarray, np.ndarray] = field(default=(_NONE, _NONE), repr=False)
    """Where rows were and are that were written again as they were, by ascending first."""

    def __len__(self) -> int:
        return len(self.before)

    @property
    def inserted(self) -> np.ndarray:
        found: np.ndarray = self.before == MISSING
        return found

    @property
    def deleted(self) -> np.ndarray:
        found: np.ndarray = self.after == MISSING
        return found

    @property
    def updated(self) -> np.ndarray:
        found: np.ndarray = ~(self.inserted | self.deleted)
        return found

    def where(self, ids: pa.StringArray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether rows are among the changed ones, and where they are now; MISSING if nowhere.

        Args:
            before: where they were, MISSING for those that were not there.
        """
        found = pc.index_in(ids, value_set=self.ids)
        is_changed = found.is_valid().to_numpy(zero_copy_only=False)
        places = np.full(len(ids), MISSING)
        places[is_changed] = self.after[found.drop_null().to_numpy()]
        # What has not changed is where it was: no id is looked up.
        is_old = ~is_changed & (before != MISSING)
        places[is_old] = self.unchanged_at(before[is_old])
        return is_changed, places

    def unchanged_at(self, before_addresses: np.ndarray) -> np.ndarray:
        """Where rows that did not change, given by where they were, are now.

        Raises:
            InvariantBroken: one of them has changed, or was not there.
        """
        if not len(before_addresses):
            return _NONE
        places = self._shared_at(before_addresses)
        lost = np.flatnonzero(places == MISSING)
        places[lost] = _looked_up(before_addresses[lost], *self._same)
        if np.any(places == MISSING) or is_in(self.before, np.sort(before_addresses)).any():
            raise InvariantBroken("rows that are asked for have not changed")
        return places

    def _shared_at(self, addresses: np.ndarray) -> np.ndarray:
        if self._match is None:
            return np.full(len(addresses), MISSING)
        return self._match.to_after(addresses)


@dataclass(frozen=True, slots=True)
class _Found:
    """Changes and rows written again as they were, out of some candidates."""

    ids: pa.ChunkedArray
    before: np.ndarray
    after: np.ndarray
    same: tuple[np.ndarray, np.ndarray] = (_NONE, _NONE)


def _all_of(before: RowView | None, after: RowView | None) -> ChangedRows:
    """All inserts, or all deletes."""
    found = [
        _unpaired(candidates)
        for candidates in iter_candidates(before, whole_of(before), after, whole_of(after))
    ]
    return _joined(found, None)


def whole_of(view: RowView | None) -> OwnRows:
    """All rows of a version, as rows that no other shares."""
    states = () if view is None else fragment_states(view.table)
    return OwnRows(tuple(state.id for state in states), _NONE, sum(state.rows for state in states))


def check_comparable(before: RowView, after: RowView) -> None:
    """
    Raises:
        InvariantBroken: the two are not seen in the same columns.
    """
    if not before.schema.equals(after.schema):
        places = f"`{before.table.location}`, `{after.table.location}`"
        raise InvariantBroken(f"rows compared are seen in the same columns: {places}")


def _compared(
    before: RowView, after: RowView, candidates: Candidates, columns: Sequence[str] | None
) -> _Found:
    unpaired = _unpaired(candidates)
    was, now = candidates.paired
    is_same = np.zeros(len(was), np.bool_)
    if columns is not None:
        is_same = equal_rows(before, was, after, now, columns)
    ids = candidates.paired_ids.filter(pa.array(~is_same))
    return _Found(
        ids=pa.chunked_array([*unpaired.ids.chunks, *ids.chunks], pa.utf8()),
        before=np.concatenate((unpaired.before, was[~is_same])),
        after=np.concatenate((unpaired.after, now[~is_same])),
        same=(was[is_same], now[is_same]),
    )


def _unpaired(candidates: Candidates) -> _Found:
    gone, come = candidates.deleted, candidates.inserted
    return _Found(
        ids=pa.chunked_array(
            [*candidates.deleted_ids.chunks, *candidates.inserted_ids.chunks], pa.utf8()
        ),
        before=np.concatenate((gone, np.full(len(come), MISSING))),
        after=np.concatenate((np.full(len(gone), MISSING), come)),
    )


def _iter_restored(
    before: RowView, after: RowView, match: RowMatch, columns: Sequence[str]
) -> Iterator[_Found]:
    """Changes of rows that stayed where they are: of columns that got other values meanwhile."""
    for part, names in stored_otherwise(before, after, match, columns).items():
        rows = changed_in_place(before, after, match, part, names)
        was, now = (rows.column(name).to_numpy() for name in ("before", "after"))
        yield _Found(rows.column("id"), was, now)


def changed_in_place(
    before: RowView, after: RowView, match: RowMatch, part: SharedPart, columns: Sequence[str]
) -> pa.Table:
    """Rows of a shared part that differ in these columns: ids, and where they are in both."""
    was, now = match.pairs(part)
    is_same = equal_rows(before, was, after, now, columns)
    changed = was[~is_same]
    ids = before.take(changed, ["id"]).column("id")
    return pa.table({"id": ids, "before": changed, "after": now[~is_same]})


def stored_otherwise(
    before: RowView, after: RowView, match: RowMatch, columns: Sequence[str]
) -> dict[SharedPart, list[str]]:
    """The columns of shared rows that have to be compared all the same."""
    found: dict[SharedPart, list[str]] = {}
    for name in columns:
        mine, other = before.stored(name), after.stored(name)
        parts = match.parts
        if mine.is_filled_like(other):
            parts = match.stored_otherwise(mine.name, other.name)
        for part in parts:
            found.setdefault(part, []).append(name)
    return found


def _joined(found: Sequence[_Found], match: RowMatch | None) -> ChangedRows:
    ids = pa.chunked_array([chunk for item in found for chunk in item.ids.chunks], pa.utf8())
    order = pc.sort_indices(ids).to_numpy()
    before = np.concatenate([_NONE, *(item.before for item in found)])
    after = np.concatenate([_NONE, *(item.after for item in found)])
    was = np.concatenate([_NONE, *(item.same[0] for item in found)])
    now = np.concatenate([_NONE, *(item.same[1] for item in found)])
    by_place = np.argsort(was)
    return ChangedRows(
        ids=ids.take(order).combine_chunks(),
        before=before[order],
        after=after[order],
        _match=match,
        _same=(was[by_place], now[by_place]),
    )


def _looked_up(addresses: np.ndarray, known: np.ndarray, places: np.ndarray) -> np.ndarray:
    if not len(known):
        return np.full(len(addresses), MISSING)
    found = np.searchsorted(known, addresses).clip(max=len(known) - 1)
    return np.where(known[found] == addresses, places[found], MISSING)
