"""What became of the rows of a table from one version to another: numbers go in and out.

Rows are followed by their fragments and the places they have there. Under one numbering a row that
stayed has the number it had; under two it may have another one, in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.errors import StorageError
from omnigraph_core.topology.adjacency import Renumbering

if TYPE_CHECKING:
    from omnigraph_core.topology.numbering import Stretch
    from omnigraph_core.topology.row_numbers import RowNumbers


def differing(one: RowNumbers, other: RowNumbers) -> np.ndarray:
    """The numbers, int32 and ascending, of rows that one version has and the other has not.

    Both follow the same numbering.
    """
    inside = other.gaps[: int(np.searchsorted(other.gaps, one.extent))]
    beyond = np.arange(min(other.extent, one.extent), one.extent, dtype=np.int32)
    missing = np.concatenate((inside, beyond))
    found: np.ndarray = missing[one.which_live(missing)]
    return found


def follow_rows(old: RowNumbers, new: RowNumbers) -> Renumbering | None:
    """Where the rows of a version are in another; None if they stand in another order there.

    It is also None if what tells is gone.
    """
    if old.numbering is new.numbering:
        numbers = np.arange(old.extent, dtype=np.int32)
        numbers[old.gaps] = -1
        numbers[differing(old, new)] = -1
        is_same = not (len(old.gaps) or (numbers < 0).any())
        return Renumbering(None if is_same else numbers, new.extent)
    numbers = np.full(old.extent, -1, np.int32)
    last = -1
    for stretch in old.stretches:
        found = new.numbering.find(stretch.state)
        if found is None or not stretch.state.rows:
            continue
        if found.start <= last:
            return None
        last = found.start
        try:
            numbers[stretch.start : stretch.end] = _moved(old, stretch, new, found)
        except StorageError:
            return None
    numbers[old.gaps] = -1
    is_there = np.flatnonzero(numbers >= 0)
    numbers[is_there[~new.which_live(numbers.take(is_there))]] = -1
    is_same = len(numbers) <= new.extent and bool((numbers == np.arange(len(numbers))).all())
    return Renumbering(None if is_same else numbers, new.extent)


def _moved(old: RowNumbers, stretch: Stretch, new: RowNumbers, found: Stretch) -> np.ndarray:
    """The numbers that the rows of a fragment have elsewhere; -1 where they have none."""
    if stretch.state.deletion == found.state.deletion:
        return np.arange(found.start, found.end)
    before, after = old.numbering.offsets(stretch), new.numbering.offsets(found)
    if before is None:
        before = np.arange(stretch.state.rows)
    if after is None:
        return before.astype(np.int64) + found.start
    ranks = np.searchsorted(after, before)
    is_there = after.take(ranks, mode="clip") == before
    return np.where(is_there, ranks + found.start, -1)
