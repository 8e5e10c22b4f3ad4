"""What is decided about the rows of one table: places and ids, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.compare.changes import MISSING, equal_rows
from omnigraph_core.merge.properties import CombinedRows, iter_combined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from omnigraph_core.compare.changes import ChangedRows
    from omnigraph_core.compare.touched import TouchedRows
    from omnigraph_core.compare.view import RowView


@dataclass(frozen=True, slots=True)
class RowConflicts:
    """Rows that nothing decides, by ascending id, with where they are on each side."""

    ids: pa.StringArray
    decisions: np.ndarray
    base: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray
    properties: Mapping[str, np.ndarray] | None = None
    """The properties in conflict, by row, where rows are merged by property."""

    def __len__(self) -> int:
        return len(self.decisions)


@dataclass(frozen=True, slots=True)
class RowWrites:
    """What is written to the target, all of it with one version."""

    taken: np.ndarray
    """Where the source's rows are that the target gets."""
    origins: np.ndarray
    """For each of these where the base's row is, if that is known and the target still has it; else
    MISSING."""
    combined: CombinedRows
    leaving: np.ndarray
    """Where the target's rows are that are replaced or deleted."""
    deleted_ids: pa.StringArray
    inserted: int
    updated: int

    @property
    def is_empty(self) -> bool:
        return not (len(self.taken) or len(self.leaving) or len(self.combined))


@dataclass(frozen=True, slots=True)
class Counted:
    """So many rows that a side has changed; which ones others know."""

    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class RowMerge:
    """What the source brings to one table of the target."""

    label: str
    base: RowView | None
    ours: RowView
    theirs: RowView
    writes: RowWrites
    conflicts: RowConflicts
    resolved: int
    """Conflicts that a choice has settled."""
    settled_ids: frozenset[str]
    """Of these, the rows that were named one by one."""
    mine: ChangedRows | TouchedRows | Counted
    """What the target did."""
    refused: pa.StringArray
    """Ids of rows that the source has written, and the target has not and does not get."""

    @property
    def has_own_changes(self) -> bool:
        """Whether the target has touched rows, too, or lacks some that the base cannot tell."""
        return len(self.mine) > 0 or len(self.refused) > 0

    def iter_rows(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows to write, some at a time: the source's first, then those with values of both."""
        yield from self.theirs.iter_taken(self.writes.taken, columns)
        yield from self.iter_combined(columns)

    def keeps(self, columns: Sequence[str]) -> np.ndarray:
        """For each row to write, whether the target is known to have its values in some columns."""
        is_kept = np.zeros(len(self.writes.taken) + len(self.writes.combined), np.bool_)
        places = np.flatnonzero(self.writes.origins != MISSING)
        if self.base is not None and len(places):
            # Of the base, whose rows have been read: the target's are the same and elsewhere.
            old, new = self.writes.origins[places], self.writes.taken[places]
            is_kept[places] = equal_rows(self.base, old, self.theirs, new, columns)
        return is_kept

    def iter_combined(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        return iter_combined(self.writes.combined, self.ours, self.theirs, columns)


@dataclass(frozen=True, slots=True)
class MergedViews:
    """A table on the three sides of a merge; no base where it is new on both others."""

    base: RowView | None
    ours: RowView
    theirs: RowView
