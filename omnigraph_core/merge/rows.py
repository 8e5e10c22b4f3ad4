"""The merge of a table that both sides have changed: three views come in, what to write goes out.

Only rows that changed are looked at. What is written is exactly what the target lacks: rows of the
source, rows with properties of both, and the places of rows that go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import MISSING, ChangedRows, changed_rows, equal_rows
from omnigraph_core.compare.touched import TouchedRows, touched_rows
from omnigraph_core.merge.decide import Decision, Done, decide, is_conflict, settle
from omnigraph_core.merge.model import MergeSide, MergeStrategy
from omnigraph_core.merge.properties import (
    NOTHING_COMBINED,
    CombinedRows,
    Triples,
    compare_properties,
)
from omnigraph_core.merge.put_rows import NOTHING_UNMET, UnmetRows, find_put
from omnigraph_core.merge.row_merge import RowConflicts, RowMerge, RowWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.merge.model import MergeOptions, Resolution
    from omnigraph_core.merge.properties import PropertyChanges
    from omnigraph_core.merge.row_merge import MergedViews
    from omnigraph_core.merge.undecided import Undecided


def merge_rows(
    label: str,
    views: MergedViews,
    options: MergeOptions,
    *,
    undecided: Undecided | None = None,
    keep_ids: Callable[[int], bool] | None = None,
) -> RowMerge:
    """Decide about every row that the source has changed since the base.

    Args:
        label: the table's key as resolutions name it.
        undecided: rows that the base cannot tell, and has not.
        keep_ids: whether the source is known to have every id that the base has; takes the
            requests that may be spent to find out.
    """
    base, theirs = views.base, views.theirs
    mine = _mine(base, views.ours, undecided)
    put = None
    if keep_ids is not None and base is not None and isinstance(mine, TouchedRows):
        put = find_put(base, theirs, mine, keep_ids)
    others = changed_rows(base, theirs) if put is None else put.changed
    unmet = NOTHING_UNMET if put is None else put.unmet
    return decide_rows(label, views, mine, others, options, undecided=undecided, unmet=unmet)


def decide_rows(
    label: str,
    views: MergedViews,
    mine: ChangedRows | TouchedRows,
    others: ChangedRows,
    options: MergeOptions,
    *,
    undecided: Undecided | None = None,
    unmet: UnmetRows = NOTHING_UNMET,
) -> RowMerge:
    """Decide about rows that the source has changed: all of a table, or those with some ids.

    Args:
        mine: what the target did to these at least.
        unmet: others, of which it is known that only the source has touched them.
    """
    base, ours, theirs = views.base, views.ours, views.theirs
    changes = _pair(mine, others)
    if undecided is not None and isinstance(mine, ChangedRows):
        changes = _with_undecided(changes, mine, undecided)
    changes = _without_same(changes, base, ours)
    decisions = decide(
        changes.base != MISSING, changes.our_done, changes.their_done, _equal(changes, ours, theirs)
    )
    choices = _choices(label, changes.ids, is_conflict(decisions), options.resolution)
    combined, by_property, resolved = NOTHING_COMBINED, None, 0
    places = np.flatnonzero(decisions == Decision.DIVERGENT_UPDATE)
    if options.strategy is MergeStrategy.PROPERTY and base is not None and len(places):
        found = compare_properties(changes.triples(places), base, ours, theirs)
        decisions, combined = _combine(decisions, changes, places, found, choices)
        by_property = _spread(found, places, len(decisions))
        resolved = int((found.is_conflict & choices.is_made[places]).sum())
    resolved += int((is_conflict(decisions) & choices.is_made).sum())
    settled = settle(
        decisions, changes.their_done, for_ours=choices.for_ours, for_theirs=choices.for_theirs
    )
    return RowMerge(
        label=label,
        base=base,
        ours=ours,
        theirs=theirs,
        writes=_writes(changes, settled, combined, unmet),
        conflicts=_conflicts(changes, settled, by_property),
        resolved=resolved,
        settled_ids=choices.named,
        mine=mine,
        refused=_refused(changes, settled),
    )


@dataclass(frozen=True, slots=True)
class _Changes:
    """The rows that the source has changed: where they are, and what both sides did to them."""

    ids: pa.StringArray
    base: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray
    our_done: np.ndarray
    their_done: np.ndarray

    def triples(self, places: np.ndarray) -> Triples:
        return Triples(self.base[places], self.ours[places], self.theirs[places])


def _mine(
    base: RowView | None, ours: RowView, undecided: Undecided | None
) -> ChangedRows | TouchedRows:
    """What the target did. Rows that the source has left alone stay, whatever became of them."""
    touched = None if base is None or undecided is not None else touched_rows(base, ours)
    return changed_rows(base, ours, is_exact=False) if touched is None else touched


def _pair(mine: ChangedRows | TouchedRows, others: ChangedRows) -> _Changes:
    is_both, ours = mine.where(others.ids, others.before)
    put_or_removed = _done(ours)
    return _Changes(
        ids=others.ids,
        base=others.before,
        ours=ours,
        theirs=others.after,
        our_done=np.where(is_both, put_or_removed, np.uint8(Done.NOTHING)),
        their_done=_done(others.after),
    )


def _done(places: np.ndarray) -> np.ndarray:
    """What became of rows that a side has changed, by where they are now; a byte each."""
    return np.where(places == MISSING, np.uint8(Done.REMOVED), np.uint8(Done.PUT))


def _with_undecided(changes: _Changes, mine: ChangedRows, undecided: Undecided) -> _Changes:
    """The same, where a side that lacks a row which the base cannot tell has removed it."""
    is_gone = undecided.has(changes.ids) & (changes.ours == MISSING)
    is_kept = mine.inserted & undecided.has(mine.ids)
    is_kept &= pc.invert(pc.is_in(mine.ids, value_set=changes.ids)).to_numpy(zero_copy_only=False)
    kept = np.flatnonzero(is_kept)
    nowhere = np.full(len(kept), MISSING)
    ids = pa.concat_arrays([changes.ids, mine.ids.take(pa.array(kept, pa.int64()))])
    order = pc.sort_indices(ids)
    our_done = np.where(is_gone, np.uint8(Done.REMOVED), changes.our_done)

    def joined(changed: np.ndarray, added: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.concatenate([changed, added])[order.to_numpy()]
        return found

    return _Changes(
        ids=ids.take(order),
        base=joined(changes.base, nowhere),
        ours=joined(changes.ours, mine.after[kept]),
        theirs=joined(changes.theirs, nowhere),
        our_done=joined(our_done, np.full(len(kept), Done.PUT, np.uint8)),
        their_done=joined(changes.their_done, np.full(len(kept), Done.REMOVED, np.uint8)),
    )


def _without_same(changes: _Changes, base: RowView | None, ours: RowView) -> _Changes:
    """The same, where rows that the target has only written again count as left alone."""
    is_again = (changes.our_done == Done.PUT) & (changes.base != MISSING)
    places = np.flatnonzero(is_again)
    if base is None or not len(places):
        return changes
    is_same = equal_rows(base, changes.base[places], ours, changes.ours[places])
    our_done = changes.our_done.copy()
    our_done[places[is_same]] = Done.NOTHING
    return replace(changes, our_done=our_done)


def _equal(changes: _Changes, ours: RowView, theirs: RowView) -> np.ndarray:
    """Whether both sides have put the same row."""
    is_equal = np.zeros(len(changes.ids), np.bool_)
    both = np.flatnonzero((changes.our_done == Done.PUT) & (changes.their_done == Done.PUT))
    if len(both):
        is_equal[both] = equal_rows(ours, changes.ours[both], theirs, changes.theirs[both])
    return is_equal


@dataclass(frozen=True, slots=True)
class _Choices:
    for_ours: np.ndarray
    for_theirs: np.ndarray
    named: frozenset[str]
    """Ids of rows in conflict that have a choice of their own."""

    @property
    def is_made(self) -> np.ndarray:
        made: np.ndarray = self.for_ours | self.for_theirs
        return made


def _choices(
    label: str, ids: pa.StringArray, undecided: np.ndarray, resolution: Resolution
) -> _Choices:
    sides = {side: np.full(len(ids), resolution.otherwise is side, np.bool_) for side in MergeSide}
    rows = {id: side for (table_key, id), side in resolution.rows.items() if table_key == label}
    found = pc.index_in(ids, value_set=pa.array(list(rows), pa.utf8()))
    places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False) & undecided)
    named = set()
    for place in places.tolist():
        id = ids[place].as_py()
        named.add(id)
        for side, mask in sides.items():
            mask[place] = side is rows[id]
    return _Choices(sides[MergeSide.OURS], sides[MergeSide.THEIRS], frozenset(named))


def _combine(
    decisions: np.ndarray,
    changes: _Changes,
    places: np.ndarray,
    found: PropertyChanges,
    choices: _Choices,
) -> tuple[np.ndarray, CombinedRows]:
    """The decisions with rows merged by property; a chosen side wins what is in conflict."""
    wins = choices.for_theirs[places]
    from_theirs = {
        name: taken | (found.in_conflict[name] & wins) for name, taken in found.from_theirs.items()
    }
    is_decided = ~found.is_conflict | choices.is_made[places]
    is_written = is_decided & np.logical_or.reduce(list(from_theirs.values()))
    decided = decisions.copy()
    decided[places[is_decided]] = Decision.KEEP
    decided[places[is_written]] = Decision.COMBINE
    rows = places[is_written]
    kept = {name: mask[is_written] for name, mask in from_theirs.items()}
    return decided, CombinedRows(changes.ours[rows], changes.theirs[rows], kept)


def _spread(found: PropertyChanges, places: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Which properties are in conflict, for all rows."""
    spread = {name: np.zeros(count, np.bool_) for name in found.in_conflict}
    for name, mask in found.in_conflict.items():
        spread[name][places] = mask
    return spread


def _conflicts(
    changes: _Changes, decisions: np.ndarray, by_property: Mapping[str, np.ndarray] | None
) -> RowConflicts:
    places = np.flatnonzero(is_conflict(decisions))
    properties = None
    if by_property is not None:
        properties = {name: mask[places] for name, mask in by_property.items()}
    return RowConflicts(
        ids=changes.ids.take(pa.array(places)),
        decisions=decisions[places],
        base=changes.base[places],
        ours=changes.ours[places],
        theirs=changes.theirs[places],
        properties=properties,
    )


def _refused(changes: _Changes, decisions: np.ndarray) -> pa.StringArray:
    is_refused = (decisions == Decision.KEEP) & (changes.their_done == Done.PUT)
    return changes.ids.filter(pa.array(is_refused & (changes.ours == MISSING)))


def _writes(
    changes: _Changes, decisions: np.ndarray, combined: CombinedRows, unmet: UnmetRows
) -> RowWrites:
    is_taken, is_deleted = decisions == Decision.TAKE, decisions == Decision.DELETE
    has_ours = changes.ours != MISSING
    is_replaced = is_taken & has_ours
    is_leaving = is_replaced | is_deleted | (decisions == Decision.COMBINE)
    origins = np.where(changes.our_done == Done.NOTHING, changes.base, MISSING)[is_taken]
    taken = np.concatenate([changes.theirs[is_taken], unmet.taken])
    # Rows of the source are read in the order in which they are stored: each page once.
    order = np.argsort(taken, kind="stable")
    return RowWrites(
        taken=taken[order],
        origins=np.concatenate([origins, np.full(len(unmet.taken), MISSING)])[order],
        combined=combined,
        leaving=np.concatenate([changes.ours[is_leaving], unmet.leaving]),
        deleted_ids=changes.ids.filter(pa.array(is_deleted)),
        inserted=int((is_taken & ~has_ours).sum()) + unmet.inserted,
        updated=int(is_replaced.sum()) + len(combined) + len(unmet.leaving),
    )
