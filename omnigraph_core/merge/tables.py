"""Which tables of three snapshots are one, and what a merge does with each, without reading a row.

A table is known by its location: it keeps it when its type is renamed, and a type that is made anew
has another one. Tables new on both sides are one if the merged schema calls them the same; from
then on their type tells that, each is where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping

    from omnigraph_core.manifest.image import TableEntry

    _Triple: TypeAlias = tuple[TableEntry | None, TableEntry | None, TableEntry | None]


class Way(StrEnum):
    """How a table is to be merged."""

    KEEP = "keep"
    """The target's, as it is."""
    ADOPT = "adopt"
    """The source's, as it is."""
    ROWS = "rows"
    """Both sides have versions of their own."""
    REMOVE = "remove"
    """The source has dropped the type; the target's table goes if it has not changed."""
    NONE = "none"
    """The target has dropped the type, and so it stays if the source has not changed it."""


@dataclass(frozen=True, slots=True)
class TableCase:
    """One table as the three snapshots have it; at least one of them does.

    `key` is what the merged schema calls it, None if it has no such type.
    """

    key: str | None
    base: TableEntry | None
    ours: TableEntry | None
    theirs: TableEntry | None

    @property
    def label(self) -> str:
        """The key as the target's users know it."""
        entries = (self.ours, self.theirs, self.base)
        return next(entry.table_key for entry in entries if entry is not None)

    @property
    def is_ours_changed(self) -> bool:
        """Whether the target has another version than the base."""
        return not _is_same(self.base, self.ours)

    @property
    def is_theirs_changed(self) -> bool:
        return not _is_same(self.base, self.theirs)

    @property
    def is_divided(self) -> bool:
        """Whether both sides have the table, in different versions."""
        if self.ours is None or self.theirs is None:
            return False
        return not _is_same(self.ours, self.theirs)

    @property
    def way(self) -> Way:
        if self.ours is not None and self.theirs is not None:
            if not self.is_divided or not self.is_theirs_changed:
                return Way.KEEP
            return Way.ROWS if self.is_ours_changed else Way.ADOPT
        if self.ours is not None:
            return Way.KEEP if self.base is None else Way.REMOVE
        return Way.ADOPT if self.base is None else Way.NONE


@dataclass(frozen=True, slots=True)
class SideTables:
    """The tables of one side."""

    entries: Collection[TableEntry]
    names: Mapping[str, str]
    """What the merged schema calls them, by their keys."""
    key_of: Callable[[TableEntry], str | None]
    """The key of the type that continues that of a table of the base, which is elsewhere here."""


def pair_tables(
    base: Collection[TableEntry], ours: SideTables, theirs: SideTables
) -> tuple[TableCase, ...]:
    """The tables of three snapshots, each once, by label."""
    mine, others = _continued(base, ours), _continued(base, theirs)
    triples: list[_Triple] = [
        (old, mine.get(old.location), others.get(old.location)) for old in base
    ]
    triples += [(None, *pair) for pair in _new_pairs(ours, mine.values(), theirs, others.values())]
    cases = []
    for old, our, their in triples:
        key = ours.names.get(our.table_key) if our is not None else None
        if key is None and their is not None:
            key = theirs.names.get(their.table_key)
        cases.append(TableCase(key, old, our, their))
    return tuple(sorted(cases, key=lambda case: case.label))


def is_same_type(one: int, other: int, known: Container[int]) -> bool:
    """Whether two types that have one name are one.

    Where two branches have made the same type, a merge of them keeps the lower of its ids. A type
    that is made anew has a higher one than that which was dropped.

    Args:
        one, other: their ids.
        known: the ids that were there before either changed.
    """
    are_known = (one in known, other in known)
    if one == other or not any(are_known):
        return True
    old, new = (one, other) if are_known[0] else (other, one)
    return not all(are_known) and new < old


def _is_same(one: TableEntry | None, other: TableEntry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.location, one.physical_version) == (other.location, other.physical_version)


def _continued(base: Collection[TableEntry], side: SideTables) -> dict[str, TableEntry]:
    """What a side has of the base's tables, by their locations there."""
    places = {entry.location: entry for entry in side.entries}
    old = {entry.location: entry for entry in base}
    found = {place: entry for place, entry in places.items() if place in old}
    moved = {entry.table_key: entry for place, entry in places.items() if place not in old}
    for place, entry in old.items():
        key = side.key_of(entry) if moved and place not in found else None
        if key in moved:
            found[place] = moved[key]
    return found


def _new_pairs(
    ours: SideTables,
    our_old: Iterable[TableEntry],
    theirs: SideTables,
    their_old: Iterable[TableEntry],
) -> list[tuple[TableEntry | None, TableEntry | None]]:
    """Tables that the base has not: one and the same, two of the same name, or of one side."""
    mine, others = _without(ours.entries, our_old), _without(theirs.entries, their_old)
    found = [(our, others.pop(place, None)) for place, our in mine.items()]
    named = {theirs.names.get(entry.table_key): entry for entry in others.values()}
    pairs: list[tuple[TableEntry | None, TableEntry | None]] = []
    for our, their in found:
        if their is None and (twin := named.get(ours.names.get(our.table_key, ""))) is not None:
            their = others.pop(twin.location)
        pairs.append((our, their))
    return [*pairs, *((None, their) for their in others.values())]


def _without(entries: Iterable[TableEntry], taken: Iterable[TableEntry]) -> dict[str, TableEntry]:
    """By location."""
    gone = {entry.location for entry in taken}
    return {entry.location: entry for entry in entries if entry.location not in gone}
