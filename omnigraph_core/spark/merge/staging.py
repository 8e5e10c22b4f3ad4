"""What a merge brings to a table, written by tasks: a decision comes in, a staged version goes out.

Files of rows and lists of rows that go belong to no version until the driver names them in one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.merge.properties import CombinedRows, iter_combined
from omnigraph_core.merge.stage_rows import written_rows
from omnigraph_core.spark.merge.joining import PROPERTY
from omnigraph_core.spark.merge.reading import Numbers, put_numbers
from omnigraph_core.spark.merge.views import ViewPlace
from omnigraph_core.storage.fragments import StagedFragments, combine, layout, write_append
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.storage.staged import remove_places, stage_removed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.spark.merge.views import Job
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table

_COMBINED: Final = "combined"
_OFFSET_BITS: Final = np.uint64(32)
_OFFSETS: Final = np.uint64(2**32 - 1)


@dataclass(frozen=True, slots=True)
class TakenTask:
    """Rows of the source to write."""

    places: Numbers


@dataclass(frozen=True, slots=True)
class CombinedTask:
    """Rows with values of both sides to write."""

    name: str
    """Of the object that tells of them."""


@dataclass(frozen=True, slots=True)
class RemovalTask:
    """Rows of one fragment that go."""

    fragment: int
    places: Numbers


@dataclass(frozen=True, slots=True)
class Target:
    """What all tasks of a table work by."""

    table: TablePlace
    """In the columns of the merged type, rows where they were."""
    ours: ViewPlace
    theirs: ViewPlace


def write_rows(job: Job, target: Target, task: TakenTask | CombinedTask) -> str:
    """Write rows as files of the table; what describes them."""
    theirs = target.theirs.open()
    if isinstance(task, TakenTask):
        portions = theirs.iter_taken(task.places.read(job.scratch))
    else:
        rows = _unpacked(job.scratch.read_tables(task.name)[_COMBINED])
        portions = iter_combined(rows, target.ours.open(), theirs)
    data = written_rows(theirs.schema, portions)
    return write_append(target.table.open(), data).to_json()


def remove_rows(job: Job, target: Target, task: RemovalTask) -> str | None:
    """The fragment without rows that go, as text; None if none is left."""
    offsets = task.places.read(job.scratch) & _OFFSETS
    return remove_places(target.table.open(), task.fragment, pa.array(offsets))


def stage_rows_by(runner: Runner, job: Job, merge: RowMerge, table: Table) -> Table | None:
    """What `merge.stage_rows.stage_rows` stages, by the tasks of a runner.

    Raises:
        JobFailed: a task could not be carried out.
    """
    begun = StagedFragments(layout(table), (), 0, time.time())
    target = Target(TablePlace.of(table), ViewPlace.of(merge.ours), ViewPlace.of(merge.theirs))
    writes, most = merge.writes, job.portion_rows
    tasks: list[TakenTask | CombinedTask] = [
        TakenTask(places) for places in put_numbers(job.scratch, writes.taken, most)
    ]
    tasks += _combined_tasks(job, writes.combined)
    written = runner.map(partial(write_rows, job, target), tasks, name=f"write {merge.label}")
    files = combine(table, [begun, *map(StagedFragments.from_json, written)])
    leaving = list(_removal_tasks(job, writes.leaving))
    left = runner.map(partial(remove_rows, job, target), leaving, name=f"replace in {merge.label}")
    updated = [text for text in left if text is not None]
    emptied = [task.fragment for task, text in zip(leaving, left, strict=True) if text is None]
    return stage_removed(table, files, updated, emptied)


def _combined_tasks(job: Job, rows: CombinedRows) -> Iterator[CombinedTask]:
    marks = {f"{PROPERTY}{name}": mask for name, mask in rows.from_theirs.items()}
    whole = pa.table({"ours": rows.ours, "theirs": rows.theirs, **marks})
    for start in range(0, len(rows), job.portion_rows):
        part = whole.slice(start, job.portion_rows)
        yield CombinedTask(job.scratch.put_tables(_COMBINED, {_COMBINED: part}))


def _unpacked(rows: pa.Table) -> CombinedRows:
    names = [name for name in rows.column_names if name.startswith(PROPERTY)]
    return CombinedRows(
        rows.column("ours").to_numpy(),
        rows.column("theirs").to_numpy(),
        {name.removeprefix(PROPERTY): rows.column(name).to_numpy() for name in names},
    )


def _removal_tasks(job: Job, leaving: np.ndarray) -> Iterator[RemovalTask]:
    """One task for each fragment that loses rows."""
    places = np.unique(leaving)
    fragments, starts = np.unique(places >> _OFFSET_BITS, return_index=True)
    ends = np.append(starts, len(places))[1:]
    for whole in put_numbers(job.scratch, places, max(1, len(places))):
        for fragment, start, end in zip(
            fragments.tolist(), starts.tolist(), ends.tolist(), strict=True
        ):
            yield RemovalTask(fragment, Numbers(whole.name, start, end - start))
