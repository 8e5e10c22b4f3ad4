"""Which rows two versions of a table share: two versions come in, the rows only one has go out.

A row is where it was put until it is rewritten: versions that have a data file have its rows at
the same places, but for those that either has deleted. Only metadata and lists of deleted rows are
read for that. Rows that a compaction moved are followed by its record, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.rewrites import Lonely, follow_moves
from omnigraph_core.storage.row_space import fragment_states, live_offsets
from omnigraph_core.storage.runs import Runs, is_in, whole

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.rewrites import Move
    from omnigraph_core.storage.row_space import FragmentState

NO_ROW: Final = np.uint64(2**64 - 1)
"""The address of no row: of a row that a version does not have."""

_OFFSET_BITS: Final = np.uint64(32)


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows of one version that another one does not share."""

    fragments: tuple[int, ...]
    """Whole ones, by id."""
    addresses: np.ndarray
    """uint64, ascending: rows of fragments that are shared but for these."""
    count: int

    def has(self, addresses: np.ndarray) -> np.ndarray:
        """Which rows, given by address, are among them."""
        fragments = np.array(sorted(self.fragments), np.uint64)
        found: np.ndarray = is_in(addresses >> _OFFSET_BITS, fragments)
        found |= is_in(addresses, self.addresses)
        return found


def unshared(a: Table, b: Table) -> tuple[OwnRows, OwnRows]:
    """The rows of each version that the other does not have with all columns in the same files.

    Of different tables that is everything.
    """
    match = match_rows(a, b)
    loose = [part for part in match.parts if not part.has_same_files]
    if not loose:
        return match.before_own, match.after_own
    return (
        _with_whole(match.before, match.before_own, {part.before for part in loose}),
        _with_whole(match.after, match.after_own, {part.after for part in loose}),
    )


def match_rows(before: Table, after: Table) -> RowMatch:
    """How rows of two versions correspond, whatever has become of the columns."""
    return RowMatch(before, after, _parts(before, after) if before.uri == after.uri else ())


@dataclass(frozen=True, slots=True, eq=False)
class SharedPart:
    """Rows that are in a fragment of one version and in a fragment of the other."""

    before: int
    after: int
    runs: Runs
    """From offsets in the one to those in the other, deleted rows among them."""
    moved_files: tuple[frozenset[str], frozenset[str]] | None = None
    """None: they are in the same file. Otherwise the files of each fragment whose columns were
    moved with the rows."""
    has_same_files: bool = True
    """Every column is where it was, or was moved with the rows."""

    def turned(self) -> SharedPart:
        """Seen from the other version."""
        files = None if self.moved_files is None else self.moved_files[::-1]
        return SharedPart(self.after, self.before, self.runs.turned(), files, self.has_same_files)


class RowMatch:
    """How the rows of two versions correspond. Reads lists of deleted rows when asked, once."""

    def __init__(self, before: Table, after: Table, parts: Sequence[SharedPart]) -> None:
        self.before = before
        self.after = after
        self.parts = tuple(parts)
        self._old = _Fragments(before)
        self._new = _Fragments(after)

    @cached_property
    def before_own(self) -> OwnRows:
        return _own(self._old, self._new, self.parts)

    @cached_property
    def after_own(self) -> OwnRows:
        return _own(self._new, self._old, [part.turned() for part in self.parts])

    def before_places(self) -> np.ndarray:
        """Addresses of all rows of the earlier version that the later one does not share."""
        whole = (self._old.addresses(fragment) for fragment in self.before_own.fragments)
        return np.sort(np.concatenate([self.before_own.addresses, *whole]))

    def to_after(self, addresses: np.ndarray) -> np.ndarray:
        """Where shared rows of the earlier version are in the later one; NO_ROW for others."""
        moved = _moved(self._runs, addresses)
        return np.where(self._own_among(addresses).has(addresses), NO_ROW, moved)

    def pairs(self, part: SharedPart) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of the rows of a part that both versions have."""
        addresses = self._old.addresses(part.before)
        moved = _moved(_address_runs([part]), addresses)
        is_shared = (moved != NO_ROW) & ~self._own_among(addresses).has(addresses)
        return addresses[is_shared], moved[is_shared]

    def _own_among(self, addresses: np.ndarray) -> OwnRows:
        """The earlier version's own rows, of the fragments at least that these are in: whoever asks
        for rows of a few reads no lists of the others."""
        if "before_own" in self.__dict__:
            return self.before_own
        fragments = np.unique(addresses >> _OFFSET_BITS).tolist()
        return _own(self._old, self._new, self.parts, frozenset(fragments))

    def stored_otherwise(self, before: str | None, after: str | None) -> tuple[SharedPart, ...]:
        """The parts in which the stored values of two columns may differ; None has no values."""
        sides = (self._old.holders(before), self._new.holders(after))
        return tuple(part for part in self.parts if not _is_alike(part, *sides))

    @cached_property
    def _runs(self) -> _AddressRuns:
        return _address_runs(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class _AddressRuns:
    """Addresses that run alike in both versions, by ascending start in the earlier one."""

    before: np.ndarray
    after: np.ndarray
    lengths: np.ndarray


class _Fragments:
    """The fragments of a version, by id."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.states: dict[int, FragmentState] = {
            state.id: state for state in fragment_states(table)
        }
        self._live: dict[int, np.ndarray] = {}

    @cached_property
    def physical_rows(self) -> dict[int, int]:
        fragments = self.table.dataset.get_fragments()
        return {item.fragment_id: int(item.metadata.physical_rows) for item in fragments}

    def live(self, fragment: int) -> np.ndarray:
        """Whether there is a row at each offset."""
        found = self._live.get(fragment)
        if found is None:
            is_whole = self.states[fragment].deletion is None
            found = np.full(self.physical_rows[fragment], is_whole)
            if not is_whole:
                found[live_offsets(self.table, fragment)] = True
            self._live[fragment] = found
        return found

    def addresses(self, fragment: int) -> np.ndarray:
        """Of all rows, ascending."""
        return _addresses(fragment, np.flatnonzero(self.live(fragment)))

    def but(self, known: Collection[int]) -> list[Lonely]:
        """The fragments without those with these ids."""
        left = [state for state in self.states.values() if state.id not in known]
        return [Lonely(item.id, item.files, self.physical_rows[item.id]) for item in left]

    def holders(self, column: str | None) -> Mapping[int, tuple[int, str] | None]:
        """The field and file that have a column in each fragment; None: every row is null."""
        if column is None:
            return dict.fromkeys(self.states)
        schema = self.table.dataset.lance_schema
        field = next(item for item in schema.fields() if item.name() == column)
        # A list is kept under the id of its items.
        ids = {field.id(), *(child.id() for child in field.children())}
        found: dict[int, tuple[int, str] | None] = {}
        for item in self.table.dataset.get_fragments():
            files = [file.path for file in item.metadata.files if ids.intersection(file.fields)]
            found[item.fragment_id] = (field.id(), files[0]) if files else None
        return found


def _with_whole(table: Table, own: OwnRows, added: set[int]) -> OwnRows:
    """The same with all rows of more fragments."""
    whole = added | set(own.fragments)
    states = [state for state in fragment_states(table) if state.id in whole]
    inside = is_in(own.addresses >> _OFFSET_BITS, np.array(sorted(whole), np.uint64))
    left = own.addresses[~inside]
    count = len(left) + sum(state.rows for state in states)
    return OwnRows(tuple(state.id for state in states), left, count)


def _parts(before: Table, after: Table) -> list[SharedPart]:
    old, new = _Fragments(before), _Fragments(after)
    by_file = {file: state for state in new.states.values() for file in state.files}
    parts = []
    for state in old.states.values():
        other = next((by_file[file] for file in state.files if file in by_file), None)
        if other is not None:
            parts.append(_same_place(state, other, old.physical_rows[state.id]))
    matched = {part.before for part in parts}, {part.after for part in parts}
    moves = follow_moves(before, old.but(matched[0]), new.but(matched[1]))
    return [*parts, *(_moved_part(move) for move in moves)]


def _same_place(state: FragmentState, other: FragmentState, count: int) -> SharedPart:
    is_same = state.files == other.files
    return SharedPart(state.id, other.id, whole(count), has_same_files=is_same)


def _moved_part(move: Move) -> SharedPart:
    files = frozenset(move.before_files), frozenset(move.after_files)
    is_same = (frozenset(move.before.files), frozenset(move.after.files)) == files
    return SharedPart(move.before.id, move.after.id, move.runs, files, is_same)


def _own(
    side: _Fragments,
    other: _Fragments,
    parts: Sequence[SharedPart],
    fragments: Collection[int] | None = None,
) -> OwnRows:
    """The rows of one side, or of some of its fragments, that are not there or deleted on the
    other."""
    by_fragment: dict[int, list[SharedPart]] = {}
    for part in parts:
        by_fragment.setdefault(part.before, []).append(part)
    whole, single, count = [], [np.zeros(0, np.uint64)], 0
    for fragment, state in side.states.items():
        here = by_fragment.get(fragment, [])
        if fragments is not None and fragment not in fragments:
            continue
        if any(_is_same_state(side, other, part) for part in here):
            continue
        own = _own_offsets(side, other, fragment, here)
        if len(own) == state.rows:
            whole.append(fragment)
        else:
            single.append(_addresses(fragment, own))
        count += len(own)
    return OwnRows(tuple(whole), np.sort(np.concatenate(single)), count)


def _is_same_state(side: _Fragments, other: _Fragments, part: SharedPart) -> bool:
    if part.moved_files is not None:
        return False
    deletions = side.states[part.before].deletion, other.states[part.after].deletion
    # The name of a list of deleted rows says something only together with the fragment's id.
    return deletions == (None, None) or (deletions[0] == deletions[1] and part.before == part.after)


def _own_offsets(
    side: _Fragments, other: _Fragments, fragment: int, parts: Sequence[SharedPart]
) -> np.ndarray:
    is_own = side.live(fragment).copy()
    for part in parts:
        live = other.live(part.after)
        is_own[part.runs.here_places()] &= ~live[part.runs.there_places()]
    return np.flatnonzero(is_own)


def _addresses(fragment: int, offsets: np.ndarray) -> np.ndarray:
    addresses: np.ndarray = (np.uint64(fragment) << _OFFSET_BITS) | offsets.astype(np.uint64)
    return addresses


def _address_runs(parts: Sequence[SharedPart]) -> _AddressRuns:
    none = np.zeros(0, np.uint64)
    before = np.concatenate([none, *(_addresses(p.before, p.runs.here) for p in parts)])
    after = np.concatenate([none, *(_addresses(p.after, p.runs.there) for p in parts)])
    lengths = np.concatenate([none, *(part.runs.length.astype(np.uint64) for part in parts)])
    order = np.argsort(before)
    return _AddressRuns(before[order], after[order], lengths[order])


def _moved(runs: _AddressRuns, addresses: np.ndarray) -> np.ndarray:
    if not len(runs.before):
        return np.full(len(addresses), NO_ROW)
    places = np.searchsorted(runs.before, addresses, side="right").astype(np.int64) - 1
    known = places.clip(min=0)
    steps = addresses - runs.before[known]
    is_inside = (places >= 0) & (steps < runs.lengths[known])
    return np.where(is_inside, runs.after[known] + steps, NO_ROW)


def _is_alike(
    part: SharedPart,
    before: Mapping[int, tuple[int, str] | None],
    after: Mapping[int, tuple[int, str] | None],
) -> bool:
    """Whether two columns have the same stored values in a part."""
    mine, other = before[part.before], after[part.after]
    if mine is None or other is None or part.moved_files is None:
        return mine == other
    # A rewrite takes along every field that the files had, under the same id.
    is_moved = mine[1] in part.moved_files[0] and other[1] in part.moved_files[1]
    return is_moved and mine[0] == other[0]
