"""What a version can take over from others: arrays by row come in, the parts of a new one go out.

Rows of a fragment whose state is the same are taken as they are; of one that only lost more rows
those that are left. Only the other fragments have to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.row_numbers import RowNumbers

_MOST_RUNS: Final = 256
"""Runs of rows that are copied one by one; where there are more, rows are picked out."""


class Rows(Protocol):
    """Something kept that has one item per row of a version."""

    @property
    def states(self) -> tuple[FragmentState, ...]: ...


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that come one after another in the new version, from what is kept or from a read."""

    source: Rows | None
    """None: the rows are to be read."""
    fragments: tuple[int, ...]
    """Ids of the fragments they are in."""
    length: int
    start: int = 0
    """The first row in the source."""
    places: np.ndarray | None = None
    """Which rows of the source, ascending, where they are not simply those from the start on."""

    def runs(self) -> Iterator[tuple[int, int]] | None:
        """Starts and ends in the source if the rows are few runs there, else None."""
        if self.places is None:
            return iter([(self.start, self.start + self.length)])
        cuts = np.flatnonzero(np.diff(self.places) != 1) + 1
        if len(cuts) >= _MOST_RUNS:
            return None
        starts = self.places[np.concatenate(([0], cuts))].tolist()
        ends = self.places[np.concatenate((cuts - 1, [-1]))].tolist()
        return ((start, end + 1) for start, end in zip(starts, ends, strict=True))


def plan_parts(rows: RowNumbers, kept: Sequence[Rows]) -> list[Part]:
    """How to put together something with an item per row, out of such of other versions."""
    origins = _Origins(kept)
    found = [origins.same(state) for state in rows.states]
    fewer = [
        place
        for place, state in enumerate(rows.states)
        if found[place] is None and origins.fuller(state) is not None
    ]
    if fewer:
        rows.load_offsets(fewer)
    parts: list[Part] = []
    for place, state in enumerate(rows.states):
        if not state.rows:
            continue
        part = found[place] or (_sifted(rows, place, origins) if place in fewer else None)
        _add(parts, part or Part(None, (state.id,), state.rows))
    return parts


class _Origins:
    """Where the rows of each fragment are in what is kept."""

    def __init__(self, kept: Sequence[Rows]) -> None:
        self._same: dict[FragmentState, tuple[Rows, int]] = {}
        self._files: dict[tuple[int, tuple[str, ...]], FragmentState] = {}
        for source in kept:
            start = 0
            for state in source.states:
                self._same.setdefault(state, (source, start))
                held = self._files.setdefault((state.id, state.files), state)
                if state.rows > held.rows:
                    self._files[state.id, state.files] = state
                start += state.rows

    def same(self, state: FragmentState) -> Part | None:
        origin = self._same.get(state)
        if origin is None:
            return None
        return Part(origin[0], (state.id,), state.rows, origin[1])

    def fuller(self, state: FragmentState) -> FragmentState | None:
        """The same fragment before it lost rows."""
        held = self._files.get((state.id, state.files))
        return held if held is not None and held.rows > state.rows else None

    def origin(self, state: FragmentState) -> tuple[Rows, int]:
        return self._same[state]


def _sifted(rows: RowNumbers, place: int, origins: _Origins) -> Part | None:
    """The rows that are left of a fuller state; None if that was not the state before."""
    state = rows.states[place]
    before = origins.fuller(state)
    if before is None:
        return None
    places = rows.offsets(place).astype(np.int64)
    if before.deletion is not None:
        known = rows.known_offsets(before)
        if known is None:
            return None
        ranks = np.searchsorted(known, places).astype(np.int64, copy=False)
        if not np.array_equal(known.take(ranks, mode="clip"), places):
            return None
        places = ranks
    source, start = origins.origin(before)
    return Part(source, (state.id,), state.rows, start, places + start)


def _add(parts: list[Part], part: Part) -> None:
    """Append a part, or lengthen the last one that it continues."""
    last = parts[-1] if parts else None
    if last is None or last.source is not part.source or not _continues(last, part):
        parts.append(part)
        return
    fragments = last.fragments + part.fragments
    parts[-1] = Part(last.source, fragments, last.length + part.length, last.start)


def _continues(last: Part, part: Part) -> bool:
    if last.places is not None or part.places is not None:
        return False
    return last.source is None or last.start + last.length == part.start
