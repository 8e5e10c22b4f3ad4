"""The files of tables that nothing needs: listed, marked by what kept versions reach, swept.

The three steps are apart because other things have to happen between them (`engine/cleanup`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from omnigraph_core.failpoints import declare
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.objects import list_directories
from omnigraph_core.storage.sweep import PERMANENT, delete_files, list_files, reachable_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from omnigraph_core.engine.roots import Pin
    from omnigraph_core.storage.session import Store
    from omnigraph_core.storage.sweep import TableFile

_SWEPT: Final = declare("cleanup.after_table", "one more table is swept")


@dataclass(frozen=True, slots=True)
class Garbage:
    """How much of a table no kept version reaches."""

    versions: int = 0
    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, paths: Collection[str], sizes: Iterable[int]) -> Garbage:
        return cls(sum(path.startswith("_versions/d") for path in paths), len(paths), sum(sizes))

    def __add__(self, other: Garbage) -> Garbage:
        return Garbage(
            self.versions + other.versions, self.files + other.files, self.bytes + other.bytes
        )


class Sweeper(Protocol):
    """The old files of all tables, as they were listed when it was made."""

    def mark(self, kept: Mapping[Pin, str]) -> Mapping[str, Garbage]:
        """How much of each table, by location, no kept version reaches.

        Args:
            kept: the versions, with the keys of their tables.

        Raises:
            StorageError: a kept version cannot be read.
        """
        ...

    def sweep(self) -> None:
        """Remove what `mark` has found."""
        ...


class SweeperHere:
    """Does it in threads of this process."""

    def __init__(self, store: Store, *, older_than: float) -> None:
        self._store = store
        self._old = {
            location: [file for file in files if file.last_modified.timestamp() < older_than]
            for location, files in list_tables(store).items()
        }
        self._garbage: dict[str, list[TableFile]] = {}

    def mark(self, kept: Mapping[Pin, str]) -> Mapping[str, Garbage]:
        needed = reached(self._store, kept)
        self._garbage = {
            location: [file for file in files if file.unit not in needed.get(location, ())]
            for location, files in self._old.items()
        }
        return {
            location: Garbage.of([file.path for file in files], (file.size for file in files))
            for location, files in self._garbage.items()
        }

    def sweep(self) -> None:
        for location, files in self._garbage.items():
            sweep_files(self._store, location, [file.path for file in files])


def table_locations(store: Store) -> list[str]:
    """Where tables are, those that no version has included."""
    kinds = ("nodes", "edges")
    return [f"{kind}/{name}" for kind in kinds for name in list_directories(store, kind)]


def list_tables(store: Store) -> dict[str, tuple[TableFile, ...]]:
    """The files of every table there is, by location: one listing each."""
    locations = table_locations(store)
    with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
        listings = pool.map(lambda location: list_files(store, location), locations)
        return dict(zip(locations, listings, strict=True))


def reached(store: Store, kept: Collection[Pin]) -> dict[str, set[str]]:
    """The units that kept versions need, and those that make a location a table, by location."""
    found: dict[str, set[str]] = {location: set(PERMANENT) for location, _ in kept}
    with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
        units = pool.map(lambda pin: reachable_files(open_table(store, *pin)), kept)
        for (location, _), needed in zip(kept, units, strict=True):
            found[location] |= needed
    return found


def sweep_files(store: Store, location: str, paths: Sequence[str]) -> None:
    """Remove files of a table; those that are gone already count as removed."""
    delete_files(store, location, paths)
    _SWEPT.hit()
