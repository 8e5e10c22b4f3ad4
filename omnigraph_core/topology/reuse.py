"""What a version can take over of what is kept: the parts of a column by number go out.

Rows that are kept under the same numbering are where they were. Under another one they are found by
their fragment, if it had not lost them when it was numbered. Only the other fragments are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.topology.kept_column import KeptColumn
    from omnigraph_core.topology.numbering import Stretch
    from omnigraph_core.topology.row_numbers import RowNumbers

_MOST_RUNS: Final = 256
"""Runs of rows that are copied one by one; where there are more, rows are picked out."""


@dataclass(frozen=True, slots=True)
class Part:
    """Items of numbers one after another: from what is kept, from a read, or of no row."""

    length: int
    source: KeptColumn | None = None
    start: int = 0
    """The number of the first item in the source."""
    places: np.ndarray | None = None
    """The numbers in the source, ascending, where they are not simply those from the start on."""
    fragment: int | None = None
    """The fragment to read, where there is no source; None: none of the numbers has a row."""
    holes: np.ndarray | None = None
    """Which of the numbers, counted from the first, have no row that could be read."""

    def runs(self) -> Iterator[tuple[int, int]] | None:
        """Starts and ends in the source if the items are few runs there, else None."""
        if self.places is None:
            return iter([(self.start, self.start + self.length)])
        cuts = np.flatnonzero(np.diff(self.places) != 1) + 1
        if len(cuts) >= _MOST_RUNS:
            return None
        starts = self.places[np.concatenate(([0], cuts))].tolist()
        ends = self.places[np.concatenate((cuts - 1, [-1]))].tolist()
        return ((start, end + 1) for start, end in zip(starts, ends, strict=True))


def plan_parts(rows: RowNumbers, kept: Sequence[KeptColumn], first: int = 0) -> list[Part]:
    """How to put together the items of a version's numbers, from one on that a fragment begins."""
    parts: list[Part] = []
    done = first
    for stretch in rows.stretches:
        if stretch.end <= first or not stretch.state.rows:
            continue
        if stretch.start > done:
            parts.append(Part(stretch.start - done))
        parts.append(_taken_over(rows, stretch, kept) or _read(rows, stretch))
        done = stretch.end
    return _joined(parts)


def _taken_over(rows: RowNumbers, stretch: Stretch, kept: Sequence[KeptColumn]) -> Part | None:
    for source in kept:
        part = _from(rows, stretch, source)
        if part is not None:
            return part
    return None


def _from(rows: RowNumbers, stretch: Stretch, source: KeptColumn) -> Part | None:
    """The items of a fragment's numbers from one source; None if it does not have them all."""
    found = source.numbering.find(stretch.state)
    if found is None or found.end > source.filled:
        return None
    length = stretch.state.rows
    if found is stretch:
        missing = _within(source.missing, found.start, found.end)
        is_whole = not rows.which_live(missing).any()
        return Part(length, source, found.start) if is_whole else None
    try:
        places = _places(rows, stretch, source, found)
    except ObjectNotFound:
        return None  # what tells where the rows were is gone
    if places is None or len(_within(source.missing, found.start, found.end)):
        return None
    return Part(length, source, found.start, None if len(places) == found.state.rows else places)


def _places(
    rows: RowNumbers, stretch: Stretch, source: KeptColumn, found: Stretch
) -> np.ndarray | None:
    """The numbers in a source of rows that are numbered otherwise here; None if it lacks some."""
    wanted, known = rows.numbering.offsets(stretch), source.numbering.offsets(found)
    if known is None:
        offsets = np.arange(stretch.state.rows) if wanted is None else wanted
        return offsets.astype(np.int64) + found.start
    if wanted is None:
        return None
    ranks = np.searchsorted(known, wanted)
    if not np.array_equal(known.take(ranks, mode="clip"), wanted):
        return None
    return ranks.astype(np.int64) + found.start


def _read(rows: RowNumbers, stretch: Stretch) -> Part:
    gaps = _within(rows.gaps, stretch.start, stretch.end)
    holes = gaps.astype(np.int64) - stretch.start if len(gaps) else None
    return Part(stretch.state.rows, fragment=stretch.state.id, holes=holes)


def _within(ordered: np.ndarray, start: int, end: int) -> np.ndarray:
    first, last = np.searchsorted(ordered, (start, end))
    return ordered[first:last]


def _joined(parts: Sequence[Part]) -> list[Part]:
    """The same with items of one source that follow each other as one part."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and _continues(last, part):
            joined[-1] = Part(last.length + part.length, last.source, last.start)
        else:
            joined.append(part)
    return joined


def _continues(last: Part, part: Part) -> bool:
    if last.source is None or last.source is not part.source:
        return False
    if last.places is not None or part.places is not None:
        return False
    return last.start + last.length == part.start
