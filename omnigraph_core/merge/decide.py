"""What becomes of each row that the source changed: what both sides did comes in, a decision out.

Pure, and whole columns at a time. A row that only one side changed is that side's; both the same is
no conflict; anything else is one, until a choice settles it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.merge.model import MergeConflictKind

if TYPE_CHECKING:
    from collections.abc import Mapping


class Done(IntEnum):
    """What a side did to a row since the base."""

    NOTHING = 0
    PUT = 1
    """It has the row, new or with other values."""
    REMOVED = 2


class Decision(IntEnum):
    """What is written to the target."""

    KEEP = 0
    """Nothing: the target has what is wanted."""
    TAKE = 1
    """The source's row, in the place of the target's if it has one."""
    DELETE = 2
    COMBINE = 3
    """Properties of both; never decided here, but where rows are compared by property."""
    DIVERGENT_INSERT = 4
    DIVERGENT_UPDATE = 5
    DELETE_VS_UPDATE = 6


CONFLICTS: Final[Mapping[int, MergeConflictKind]] = {
    Decision.DIVERGENT_INSERT: MergeConflictKind.DIVERGENT_INSERT,
    Decision.DIVERGENT_UPDATE: MergeConflictKind.DIVERGENT_UPDATE,
    Decision.DELETE_VS_UPDATE: MergeConflictKind.DELETE_VS_UPDATE,
}


def decide(
    in_base: np.ndarray, ours: np.ndarray, theirs: np.ndarray, is_equal: np.ndarray
) -> np.ndarray:
    """A decision for each row.

    Args:
        in_base: whether the common ancestor has the row.
        ours: what the target did, as `Done`.
        theirs: what the source did.
        is_equal: whether both sides have the same row; looked at only where both have put one.

    >>> put, removed = [Done.PUT], [Done.REMOVED]
    >>> [int(decide(np.array([True]), np.array(put), np.array(removed), np.array([False]))[0])]
    [6]
    """
    decisions = np.full(len(theirs), Decision.KEEP, np.uint8)
    is_ours_idle = ours == Done.NOTHING
    decisions[is_ours_idle & (theirs == Done.PUT)] = Decision.TAKE
    decisions[is_ours_idle & (theirs == Done.REMOVED)] = Decision.DELETE
    is_divergent = (ours == Done.PUT) & (theirs == Done.PUT) & ~is_equal
    decisions[is_divergent & ~in_base] = Decision.DIVERGENT_INSERT
    decisions[is_divergent & in_base] = Decision.DIVERGENT_UPDATE
    one_removed = (ours == Done.REMOVED) & (theirs == Done.PUT)
    other_removed = (ours == Done.PUT) & (theirs == Done.REMOVED)
    decisions[one_removed | other_removed] = Decision.DELETE_VS_UPDATE
    return decisions


def is_conflict(decisions: np.ndarray) -> np.ndarray:
    """Where nothing is decided."""
    undecided: np.ndarray = decisions >= Decision.DIVERGENT_INSERT
    return undecided


def settle(
    decisions: np.ndarray, theirs: np.ndarray, *, for_ours: np.ndarray, for_theirs: np.ndarray
) -> np.ndarray:
    """The decisions after a side was chosen for some rows; where there is no conflict, as before.

    Args:
        theirs: what the source did, as `Done`.
        for_ours: the rows for which the target is chosen.
        for_theirs: those for which the source is.
    """
    settled = decisions.copy()
    undecided = is_conflict(decisions)
    settled[undecided & for_ours] = Decision.KEEP
    settled[undecided & for_theirs & (theirs == Done.PUT)] = Decision.TAKE
    settled[undecided & for_theirs & (theirs == Done.REMOVED)] = Decision.DELETE
    return settled
