"""Rows that two versions do not share, read by tasks: views come in, rows by id go out.

Which rows these are is known from files alone. A task reads the ids of some fragments, of some
single rows, or compares the values of rows that stayed where they are while a column was stored
anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.compare.changes import (
    changed_in_place,
    check_comparable,
    stored_otherwise,
    whole_of,
)
from omnigraph_core.compare.touched import own_rows
from omnigraph_core.spark.merge.ranges import OWN, STAYED, put_rows
from omnigraph_core.spark.merge.views import ViewPlace
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.version_rows import OwnRows, match_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.spark.merge.ranges import SortedRows
    from omnigraph_core.spark.merge.views import Job
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.scratch import Scratch

_NUMBER: Final = np.dtype("<u8")
_NO_PLACES: Final = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Places of rows in an object: so many, from this one on."""

    name: str
    start: int
    count: int

    def read(self, scratch: Scratch) -> np.ndarray:
        size = _NUMBER.itemsize
        content = scratch.read(self.name, self.start * size, (self.start + self.count) * size)
        return np.frombuffer(content, _NUMBER)


def put_numbers(scratch: Scratch, places: np.ndarray, most: int) -> list[Numbers]:
    """Keep places of rows, to be read in pieces of at most so many."""
    if not len(places):
        return []
    name = scratch.put("places", places.astype(_NUMBER).tobytes())
    return [
        Numbers(name, start, min(most, len(places) - start))
        for start in range(0, len(places), most)
    ]


@dataclass(frozen=True, slots=True)
class OwnTask:
    """Rows of one version to read the ids of: whole fragments, or single rows."""

    what: str
    view: ViewPlace
    fragments: tuple[int, ...] = ()
    places: Numbers | None = None


@dataclass(frozen=True, slots=True)
class StayedTask:
    """Rows that both versions have, to be compared in some columns."""

    what: str
    before: ViewPlace
    after: ViewPlace
    part: int
    """Which of the parts that the versions share."""
    columns: tuple[str, ...]


def read_rows(job: Job, task: OwnTask | StayedTask) -> SortedRows | None:
    """Keep what a task is to read; None if that is nothing."""
    rows = _own(job, task).cast(OWN) if isinstance(task, OwnTask) else _stayed(task).cast(STAYED)
    return put_rows(job.scratch, task.what, rows)


def _own(job: Job, task: OwnTask) -> pa.Table:
    view = task.view.open()
    places = _NO_PLACES if task.places is None else task.places.read(job.scratch)
    # How many they are is asked only for other columns than ids.
    own = OwnRows(task.fragments, places, max(1, len(places)))
    return own_rows(view, own, ("id",))


def _stayed(task: StayedTask) -> pa.Table:
    before, after = task.before.open(), task.after.open()
    match = match_rows(before.table, after.table)
    return changed_in_place(before, after, match, match.parts[task.part], task.columns)


def read_all(runner: Runner, job: Job, tasks: Sequence[OwnTask | StayedTask]) -> list[SortedRows]:
    """What all tasks have read.

    Raises:
        JobFailed: a task could not be carried out.
    """
    read = runner.map(partial(read_rows, job), tasks, name="read ids of changed rows")
    return [part for part in read if part is not None]


def pair_tasks(
    job: Job,
    what: str,
    before: RowView | None,
    after: RowView | None,
    columns: Sequence[str] | None,
) -> Iterator[OwnTask | StayedTask]:
    """All that has to be read to compare two versions.

    Args:
        what: the rows are of; `before`, `after` and `stayed` are added to it.
        columns: those that are compared; all without them.
    """
    if before is None or after is None:
        if before is not None:
            yield from own_tasks(job, f"{what} before", before, whole_of(before))
        if after is not None:
            yield from own_tasks(job, f"{what} after", after, whole_of(after))
        return
    check_comparable(before, after)
    match = match_rows(before.table, after.table)
    yield from own_tasks(job, f"{what} before", before, match.before_own)
    yield from own_tasks(job, f"{what} after", after, match.after_own)
    chosen = after.columns if columns is None else columns
    compared = [name for name in chosen if name != "id"]
    places = ViewPlace.of(before), ViewPlace.of(after)
    for part, names in stored_otherwise(before, after, match, compared).items():
        yield StayedTask(f"{what} stayed", *places, match.parts.index(part), tuple(names))


def own_tasks(job: Job, what: str, view: RowView, own: OwnRows) -> Iterator[OwnTask]:
    """The rows of one version that another does not share, about as many for each task."""
    place = ViewPlace.of(view)
    for fragments in _grouped(view, own.fragments, job.portion_rows):
        yield OwnTask(what, place, fragments)
    for numbers in put_numbers(job.scratch, own.addresses, job.portion_rows):
        yield OwnTask(what, place, places=numbers)


def _grouped(view: RowView, fragments: Sequence[int], most_rows: int) -> Iterator[tuple[int, ...]]:
    """Fragments in groups of at most so many rows, or one fragment."""
    rows = {state.id: state.rows for state in fragment_states(view.table)}
    group: list[int] = []
    held = 0
    for fragment in fragments:
        if group and held + rows[fragment] > most_rows:
            yield tuple(group)
            group, held = [], 0
        group.append(fragment)
        held += rows[fragment]
    if group:
        yield tuple(group)
