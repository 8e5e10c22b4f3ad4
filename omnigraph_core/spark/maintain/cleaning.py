"""Files of tables that nothing needs, found and removed by tasks.

    list   one table:    its old files, in portions that are kept in scratch objects
    mark   one table:    of its portions, the files that no kept version reaches
    sweep  one portion:  removes these

Only counts and names of portions come back. A task may be done again at any time, also by an
attempt that was given up long ago: a name in a portion is never used for another file, so what is
gone stays gone. The few names that a table made later at the same place has again are removed by
the driver, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.engine.sweeping import Garbage, reached, sweep_files, table_locations
from omnigraph_core.job_report import job_facts, table_facts
from omnigraph_core.storage.places import shared_store
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.sweep import PERMANENT, iter_files, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.engine.roots import Pin
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.session import Store

_FILES: Final = "files"


@dataclass(frozen=True, slots=True)
class Job:
    """One cleanup; the same for every task."""

    root: str
    id: str
    older_than: float
    portion_files: int

    @property
    def store(self) -> Store:
        return shared_store(self.root)

    def keep(self, paths: list[str], sizes: list[int]) -> str:
        files = pa.table({"path": paths, "size": sizes})
        return Scratch(self.store, self.id).put_tables(_FILES, {_FILES: files})

    def files(self, portion: str) -> tuple[list[str], list[int]]:
        files = Scratch(self.store, self.id).read_tables(portion)[_FILES]
        return files.column("path").to_pylist(), files.column("size").to_pylist()


@dataclass(frozen=True, slots=True)
class Listed:
    """A table with its old files, and the versions that are kept."""

    location: str
    portions: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """What nothing needs of a table."""

    garbage: Garbage
    portions: tuple[str, ...]
    lasting: tuple[str, ...]
    """What makes the location a table: not in the portions."""


def list_table(job: Job, location: str) -> Listed:
    """Keep the old files of a table."""
    files = iter_files(job.store, location)
    old = (file for file in files if file.last_modified.timestamp() < job.older_than)
    portions = []
    while portion := list(islice(old, job.portion_files)):
        kept = job.keep([file.path for file in portion], [file.size for file in portion])
        portions.append(kept)
    return Listed(location, tuple(portions))


def mark_table(job: Job, table: Listed) -> Marked:
    """Keep those of the files that no kept version reaches."""
    pins = [(table.location, version) for version in table.kept]
    needed = reached(job.store, pins).get(table.location, set())
    garbage, portions, lasting = Garbage(), [], []
    for name in table.portions:
        sizes = {
            path: size
            for path, size in zip(*job.files(name), strict=True)
            if unit_of(path) not in needed
        }
        garbage += Garbage.of(sizes, sizes.values())
        lasting += [path for path in sizes if unit_of(path) in PERMANENT]
        for path in lasting:
            sizes.pop(path, None)
        if sizes:
            portions.append(job.keep([*sizes], [*sizes.values()]))
    return Marked(garbage, tuple(portions), tuple(lasting))


def sweep_portion(job: Job, portion: tuple[str, str]) -> None:
    """Remove the files of a portion of what is at a location."""
    location, name = portion
    sweep_files(job.store, location, job.files(name)[0])


class SweeperThere:
    """Lists, marks and sweeps by the tasks of a runner."""

    def __init__(
        self, runner: Runner, scratch: Scratch, older_than: float, portion_files: int
    ) -> None:
        self._runner, self._store = runner, scratch.store
        self._job = Job(scratch.store.root.text, scratch.job, older_than, portion_files)
        listing, locations = partial(list_table, self._job), table_locations(scratch.store)
        with table_facts(locations):
            self._listed = runner.map(listing, locations, name="list files")
        self._marked: dict[str, Marked] = {}
        self._types: dict[str, str] = {}

    def mark(self, kept: Mapping[Pin, str]) -> Mapping[str, Garbage]:
        self._types = {location: table_key for (location, _), table_key in kept.items()}
        versions: dict[str, list[int]] = {table.location: [] for table in self._listed}
        for location, version in kept:
            versions.setdefault(location, []).append(version)
        portions = {table.location: table.portions for table in self._listed}
        tables = [
            Listed(location, portions.get(location, ()), tuple(kept))
            for location, kept in versions.items()
        ]
        with job_facts(tables=self._types), table_facts(versions):
            marked = self._runner.map(partial(mark_table, self._job), tables, name="mark files")
        self._marked = dict(zip(versions, marked, strict=True))
        return {location: self._marked[location].garbage for location in portions}

    def sweep(self) -> None:
        found = [(place, name) for place, item in self._marked.items() for name in item.portions]
        with job_facts(tables=self._types), table_facts(place for place, _ in found):
            self._runner.map(partial(sweep_portion, self._job), found, name="sweep files")
        for location, item in self._marked.items():
            sweep_files(self._store, location, item.lasting)
