"""Which tables of three snapshots are one, and what a merge does with each, without reading a row.

A table is known by its location: it keeps it when its type is renamed, and a type that is made anew
has another one. Tables new on both sides are one if the merged schema calls them the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.manifest.image import TableEntry


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
    def way(self) -> Way:
        if self.ours is not None and self.theirs is not None:
            if _is_same(self.ours, self.theirs) or not self.is_theirs_changed:
                return Way.KEEP
            return Way.ROWS if self.is_ours_changed else Way.ADOPT
        if self.ours is not None:
            return Way.KEEP if self.base is None else Way.REMOVE
        return Way.ADOPT if self.base is None else Way.NONE


def pair_tables(
    base: Iterable[TableEntry],
    ours: Iterable[TableEntry],
    theirs: Iterable[TableEntry],
    our_names: Mapping[str, str],
    their_names: Mapping[str, str],
) -> tuple[TableCase, ...]:
    """The tables of three snapshots, each once, by label.

    Args:
        our_names: what the merged schema calls the target's tables, by their keys.
        their_names: the same for the source's.
    """
    old = {entry.location: entry for entry in base}
    mine = {entry.location: entry for entry in ours}
    others = {entry.location: entry for entry in theirs}
    twins = _new_on_both(
        {our_names.get(item.table_key): item for item in _only_new(mine, old, others)},
        {their_names.get(item.table_key): item for item in _only_new(others, old, mine)},
    )
    partners = set(twins.values())
    cases = []
    for location in dict.fromkeys((*old, *mine, *others)):
        if location in partners:
            continue
        our, their = mine.get(location), others.get(twins.get(location, location))
        key = our_names.get(our.table_key) if our is not None else None
        if key is None and their is not None:
            key = their_names.get(their.table_key)
        cases.append(TableCase(key, old.get(location), our, their))
    return tuple(sorted(cases, key=lambda case: case.label))


def _is_same(one: TableEntry | None, other: TableEntry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.location, one.physical_version) == (other.location, other.physical_version)


def _only_new(
    side: Mapping[str, TableEntry], old: Mapping[str, TableEntry], other: Mapping[str, TableEntry]
) -> list[TableEntry]:
    return [entry for place, entry in side.items() if place not in old and place not in other]


def _new_on_both(
    ours: Mapping[str | None, TableEntry], theirs: Mapping[str | None, TableEntry]
) -> dict[str, str]:
    """Locations of the target's new tables and of the source's of the same name."""
    names = [name for name in ours if name is not None and name in theirs]
    return {ours[name].location: theirs[name].location for name in names}
