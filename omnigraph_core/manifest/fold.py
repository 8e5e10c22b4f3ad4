"""From catalog rows about tables to the tables one can see.

Per table the newest version counts, and a tombstone hides every version up to its own. The result
is sorted by table key and does not depend on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.manifest.fields import damaged
from omnigraph_core.manifest.image import TableEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.manifest.image import TableOperation


@dataclass(frozen=True, slots=True)
class Registration:
    """A table exists, and where."""

    table_key: str
    location: str


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """One version of a table; the fields are those of `TableEntry`."""

    table_key: str
    table_version: int
    physical_version: int
    branch: str | None
    row_count: int
    fragment_count: int
    operation: TableOperation

    def at(self, location: str) -> TableEntry:
        return TableEntry(
            table_key=self.table_key,
            location=location,
            table_version=self.table_version,
            physical_version=self.physical_version,
            branch=self.branch,
            row_count=self.row_count,
            fragment_count=self.fragment_count,
            operation=self.operation,
        )


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A table is removed: all its versions up to and including this one."""

    table_key: str
    version: int


@dataclass(frozen=True, slots=True)
class Folded:
    """The visible tables, and the highest tombstone of every table that has one."""

    tables: Mapping[str, TableEntry]
    tombstones: Mapping[str, int]


def fold_tables(
    registrations: Iterable[Registration],
    versions: Iterable[PublishedVersion],
    tombstones: Iterable[Tombstone],
    *,
    where: str,
) -> Folded:
    """What the rows of one catalog version make visible.

    Raises:
        StorageError: the rows contradict each other or one is missing.
    """
    locations = _locations(registrations, where)
    newest = _newest(versions, where)
    hidden = _highest(tombstones)
    for table_key in sorted({*newest, *locations}):
        if table_key not in locations:
            raise damaged(where, f"`{table_key}` has a version but is not registered")
        if table_key not in newest:
            raise damaged(where, f"`{table_key}` is registered but has no version")
    visible = {
        table_key: newest[table_key].at(locations[table_key])
        for table_key in sorted(newest)
        if newest[table_key].table_version > hidden.get(table_key, 0)
    }
    return Folded(visible, hidden)


def _locations(registrations: Iterable[Registration], where: str) -> dict[str, str]:
    locations: dict[str, str] = {}
    for item in registrations:
        if item.table_key in locations:
            raise damaged(where, f"`{item.table_key}` is registered twice")
        locations[item.table_key] = item.location
    return locations


def _newest(versions: Iterable[PublishedVersion], where: str) -> dict[str, PublishedVersion]:
    seen: set[tuple[str, int]] = set()
    newest: dict[str, PublishedVersion] = {}
    for item in versions:
        if (item.table_key, item.table_version) in seen:
            raise damaged(where, f"`{item.table_key}` has two versions {item.table_version}")
        seen.add((item.table_key, item.table_version))
        known = newest.get(item.table_key)
        if known is None or item.table_version > known.table_version:
            newest[item.table_key] = item
    return newest


def _highest(tombstones: Iterable[Tombstone]) -> dict[str, int]:
    highest: dict[str, int] = {}
    for item in sorted(tombstones, key=lambda item: (item.table_key, item.version)):
        highest[item.table_key] = item.version
    return highest
