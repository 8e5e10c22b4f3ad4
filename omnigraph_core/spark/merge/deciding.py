"""A table merged by tasks, each for one range of ids: three views come in, one decision goes out.

A task compares and decides with the functions of every merge. It leaves places of rows beside the
graph, and ids only of rows that are in conflict or go: what comes together is what one process
would have decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.compare.changes import changed_among
from omnigraph_core.compare.touched import TouchedRows, touched_rows
from omnigraph_core.merge.row_merge import Counted, MergedViews
from omnigraph_core.merge.rows import decide_rows
from omnigraph_core.spark.merge.joining import PROPERTY, Decided, joined
from omnigraph_core.spark.merge.ranges import by_ranges
from omnigraph_core.spark.merge.reading import own_tasks, pair_tasks, read_all
from omnigraph_core.spark.merge.views import ViewPlace, opened, place_of
from omnigraph_core.storage.version_rows import match_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from omnigraph_core.compare.changes import ChangedRows
    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.merge.undecided import Undecided
    from omnigraph_core.spark.merge.ranges import Portion
    from omnigraph_core.spark.merge.views import Job
    from omnigraph_core.spark.runner import Runner

_OURS: Final = "ours"
_THEIRS: Final = "theirs"


@dataclass(frozen=True, slots=True)
class TableMerging:
    """What all tasks of a table work by."""

    label: str
    base: ViewPlace | None
    ours: ViewPlace
    theirs: ViewPlace
    options: MergeOptions
    undecided: Undecided | None
    is_by_place: bool
    """What the target did is told by places, its own rows alone are read for that."""


def decide_portion(job: Job, table: TableMerging, portion: Portion) -> Decided:
    """Decide about the rows of a range."""
    views = MergedViews(opened(table.base), table.ours.open(), table.theirs.open())
    mine = _mine(table, views, portion)
    others = changed_among(views.base, views.theirs, portion.known(_THEIRS))
    found = decide_rows(table.label, views, mine, others, table.options, undecided=table.undecided)
    writes, conflicts = found.writes, found.conflicts
    tables = {
        "taken": pa.table({"theirs": writes.taken, "base": writes.origins}),
        "leaving": pa.table({"ours": writes.leaving}),
        "combined": pa.table(
            {
                "ours": writes.combined.ours,
                "theirs": writes.combined.theirs,
                **_marked(writes.combined.from_theirs),
            }
        ),
        "deleted": pa.table({"id": writes.deleted_ids}),
        "refused": pa.table({"id": found.refused}),
        "conflicts": pa.table(
            {
                "id": conflicts.ids,
                "decision": conflicts.decisions,
                "base": conflicts.base,
                "ours": conflicts.ours,
                "theirs": conflicts.theirs,
                **_marked(conflicts.properties or {}),
            }
        ),
    }
    return Decided(
        kept=job.scratch.put_tables("decided", tables),
        inserted=writes.inserted,
        updated=writes.updated,
        resolved=found.resolved,
        settled_ids=found.settled_ids,
        properties=None if conflicts.properties is None else tuple(conflicts.properties),
        own_changes=0 if table.is_by_place else len(mine),
    )


def _mine(table: TableMerging, views: MergedViews, portion: Portion) -> ChangedRows | TouchedRows:
    base, ours = views.base, views.ours
    match = None if base is None else match_rows(base.table, ours.table)
    if table.is_by_place and base is not None and match is not None:
        return TouchedRows(base, ours, match, portion.rows(_OURS))
    return changed_among(base, ours, portion.known(_OURS), is_exact=False, match=match)


def _marked(masks: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns that say of properties what they hold for; no other column has such a name."""
    return {f"{PROPERTY}{name}": mask for name, mask in masks.items()}


def merge_rows_by(
    runner: Runner,
    job: Job,
    label: str,
    views: MergedViews,
    options: MergeOptions,
    undecided: Undecided | None,
) -> RowMerge:
    """What `merge.rows.merge_rows` decides, by the tasks of a runner.

    Raises:
        JobFailed: a task could not be carried out.
    """
    base, ours, theirs = views.base, views.ours, views.theirs
    touched = None if base is None or undecided is not None else touched_rows(base, ours)
    tasks = list(pair_tasks(job, _THEIRS, base, theirs, None))
    if touched is None:
        tasks += pair_tasks(job, _OURS, base, ours, None)
    else:
        tasks += own_tasks(job, _OURS, ours, touched.written)
    table = TableMerging(
        label,
        place_of(base),
        ViewPlace.of(ours),
        ViewPlace.of(theirs),
        options,
        undecided,
        is_by_place=touched is not None,
    )
    read = read_all(runner, job, tasks)
    work = partial(decide_portion, job, table)
    decided = by_ranges(runner, job, read, work, name="decide about rows")
    own = Counted(sum(part.own_changes for part in decided))
    return joined(job, label, views, own if touched is None else touched, decided)
