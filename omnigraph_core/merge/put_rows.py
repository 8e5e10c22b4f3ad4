"""A source that has only put rows: its rows come in, what to take and what to replace goes out.

Its rows are taken, and the base's rows that it replaced go. Which row replaced which is asked only
where the target has touched one of them, or where a row may be as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import MISSING, ChangedRows, equal_rows
from omnigraph_core.compare.touched import touched_rows
from omnigraph_core.compare.unlike import unlike_all
from omnigraph_core.storage.sparse import spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.compare.touched import TouchedRows
    from omnigraph_core.compare.view import RowView

MOST_PUT: Final = 4_096
"""Rows up to which places are asked first; of more, so many are read that ids come cheap."""


@dataclass(frozen=True, slots=True)
class UnmetRows:
    """Rows that the source alone has touched, all of them changed; nobody knows which is which."""

    taken: np.ndarray
    """Where the source's are."""
    leaving: np.ndarray
    """Where those of the target are that some of them replace."""

    @property
    def inserted(self) -> int:
        return len(self.taken) - len(self.leaving)


NOTHING_UNMET: Final = UnmetRows(np.zeros(0, np.uint64), np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True)
class PutRows:
    """What a source has changed: rows with what they were before, and rows without."""

    changed: ChangedRows
    unmet: UnmetRows


def find_put(
    base: RowView, theirs: RowView, mine: TouchedRows, keep_ids: Callable[[int], bool]
) -> PutRows | None:
    """What a source has changed that has every id of the base; None if it may not have, or has
    changed too much.

    Args:
        mine: what the target did.
        keep_ids: whether the source has every id; takes the requests that this would save.
    """
    touched = touched_rows(base, theirs)
    if touched is None or len(touched) > MOST_PUT:
        return None
    if not keep_ids(spread(touched.gone_places)):
        return None
    old, new = touched.gone_places, touched.places
    in_ours = mine.match.to_after(old)
    is_shared = pc.is_in(touched.ids, value_set=mine.ids).to_numpy()
    is_asked = in_ours == MISSING
    unmet = np.flatnonzero(~is_asked)
    is_asked[unmet] = ~unlike_all(base, old[unmet], theirs, new[~is_shared])
    asked = base.take(old[is_asked], ["id"]).column("id")
    found = pc.index_in(asked, value_set=touched.ids)
    if found.null_count:
        return None  # an id is gone, against what is known: everything is compared
    places = found.to_numpy()
    is_known = np.zeros(len(new), np.bool_)
    is_known[places] = True
    is_left = ~(is_known | is_shared)
    is_same = equal_rows(base, old[is_asked], theirs, new[places])
    both = np.flatnonzero(is_shared & ~is_known)
    chosen = np.concatenate([places[~is_same], both])
    before = np.concatenate([old[is_asked][~is_same], np.full(len(both), MISSING)])
    return PutRows(_changed(touched, chosen, before), UnmetRows(new[is_left], in_ours[~is_asked]))


def _changed(touched: TouchedRows, chosen: np.ndarray, before: np.ndarray) -> ChangedRows:
    """Some of the rows that were written, by id."""
    ids = touched.ids.take(pa.array(chosen, pa.int64())).combine_chunks()
    order = pc.sort_indices(ids).to_numpy()
    return ChangedRows(ids.take(pa.array(order)), before[order], touched.places[chosen][order])
