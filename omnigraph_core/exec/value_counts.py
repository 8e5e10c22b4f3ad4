"""How many different values the groups of a match have, exactly, as its rows come in portions.

Where values and groups have codes that stay, a pair of the two is one number and only such numbers
are kept: as flags where they are few enough, else sorted. Otherwise a row of every pair is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from omnigraph_core.exec.codes import MOST_CODES, Coder, try_coder
from omnigraph_core.exec.dedupe import distinct_of
from omnigraph_core.exec.distinct import DistinctFrames
from omnigraph_core.exec.frame import concat
from omnigraph_core.exec.group import group_rows
from omnigraph_core.exec.project import Rows
from omnigraph_core.query.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.query.typed import TypedExpr

_CLAUSE: Final = "count(distinct)"
_MOST_FLAGS: Final = 2**25
_FLAGS_PER_ROW: Final = 64
_MOST_WAITING: Final = 2**18


class _Pairs(Protocol):
    """Pairs of a group and a value, each once."""

    def add(self, frame: Frame) -> object: ...

    def of_groups(self, groups: Frame) -> np.ndarray: ...


class ValueCounts:
    """Takes rows, none of them without a value; tells how many different ones a group has."""

    def __init__(self, run: Run, keys: Sequence[TypedExpr], argument: TypedExpr) -> None:
        self._run = run
        self._keys = keys
        self._argument = argument
        self._pairs: _Pairs | None = None

    def add(self, frame: Frame) -> None:
        if not frame.length:
            return
        if self._pairs is None:
            self._pairs = self._made_for(frame.length)
        self._pairs.add(frame)

    def of_groups(self, groups: Frame) -> np.ndarray:
        """The counts of groups that are given by a row of each, int64."""
        if self._pairs is None:
            return np.zeros(groups.length, np.int64)
        return self._pairs.of_groups(groups)

    def _made_for(self, asked: int) -> _Pairs:
        value = try_coder(self._run, self._argument, asked)
        keys = [try_coder(self._run, key, asked) for key in self._keys]
        known = [key for key in keys if key is not None]
        space = math.prod(coder.space for coder in known)
        if value is None or len(known) < len(keys) or space * value.space > MOST_CODES:
            return _PairsByRow(self._run, self._keys, self._argument)
        is_flagged = space * value.space <= min(_MOST_FLAGS, _FLAGS_PER_ROW * asked)
        made = _FlaggedPairs if is_flagged else _SortedPairs
        return made(self._run, known, value, space)


class _CodedPairs:
    """Pairs as numbers: the code of the group times so many values, and the code of the value."""

    def __init__(self, run: Run, keys: Sequence[Coder], value: Coder, space: int) -> None:
        self._run = run
        self._keys = keys
        self._value = value
        self._space = space

    def _groups(self, frame: Frame) -> np.ndarray:
        groups = np.zeros(frame.length, np.int64)
        for place, key in enumerate(self._keys):
            if place:
                groups *= key.space
            groups += key.codes(frame.numbers[key.variable])
        return groups

    def _coded(self, frame: Frame) -> np.ndarray:
        pairs = self._groups(frame)
        pairs *= self._value.space
        pairs += self._value.codes(frame.numbers[self._value.variable])
        return pairs


class _FlaggedPairs(_CodedPairs):
    """A flag for every pair there could be."""

    def __init__(self, run: Run, keys: Sequence[Coder], value: Coder, space: int) -> None:
        super().__init__(run, keys, value, space)
        run.guard.hold(space * value.space, _CLAUSE)
        self._flags = np.zeros(space * value.space, np.bool_)

    def add(self, frame: Frame) -> None:
        self._flags[self._coded(frame)] = True

    def of_groups(self, groups: Frame) -> np.ndarray:
        by_group = self._flags.reshape(self._space, -1)
        counts: np.ndarray = by_group.sum(axis=1, dtype=np.int64)
        return counts.take(self._groups(groups))


class _SortedPairs(_CodedPairs):
    """Every pair there is, in portions that are sorted and made one now and then."""

    def __init__(self, run: Run, keys: Sequence[Coder], value: Coder, space: int) -> None:
        super().__init__(run, keys, value, space)
        self._waiting: list[np.ndarray] = []
        self._held = 0
        self._most_waiting = _MOST_WAITING

    def add(self, frame: Frame) -> None:
        self._hold(distinct_of(self._coded(frame)))
        if len(self._waiting) > 1 and sum(map(len, self._waiting)) > self._most_waiting:
            self._most_waiting = 4 * len(self._merged())

    def of_groups(self, groups: Frame) -> np.ndarray:
        owners = self._merged() // self._value.space
        wanted = self._groups(groups)
        ends = np.searchsorted(owners, wanted, side="right")
        return ends - np.searchsorted(owners, wanted, side="left")

    def _merged(self) -> np.ndarray:
        if len(self._waiting) > 1:
            self._run.guard.check()
            merged = distinct_of(np.concatenate(self._waiting))
            self._run.guard.release(self._held)
            self._waiting, self._held = [], 0
            self._hold(merged)
        return self._waiting[0]

    def _hold(self, pairs: np.ndarray) -> None:
        self._run.guard.hold(pairs.nbytes, _CLAUSE)
        self._held += pairs.nbytes
        self._waiting.append(pairs)


class _PairsByRow:
    """A row of the match for every pair there is."""

    def __init__(self, run: Run, keys: Sequence[TypedExpr], argument: TypedExpr) -> None:
        self._run = run
        self._keys = keys
        self._variables = mentions(*keys)
        self._rows = DistinctFrames(run, (*keys, argument), _CLAUSE)

    def add(self, frame: Frame) -> None:
        self._rows.add(frame)

    def of_groups(self, groups: Frame) -> np.ndarray:
        kept = self._rows.frame()
        if kept is None:
            return np.zeros(groups.length, np.int64)
        both = Rows(concat([groups, kept.keeping(self._variables)]))
        ids = group_rows(self._run, both, self._keys).ids
        if ids is None:
            return np.full(groups.length, kept.length)
        counts = np.bincount(ids[groups.length :], minlength=int(ids.max()) + 1)
        return counts.take(ids[: groups.length])
