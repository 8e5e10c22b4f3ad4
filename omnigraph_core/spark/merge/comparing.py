"""Two versions compared by tasks, each for one range of ids: views come in, changed rows go out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.compare.changes import ChangedRows, changed_among
from omnigraph_core.spark.merge.ranges import STAYED, by_ranges
from omnigraph_core.spark.merge.reading import pair_tasks, read_all
from omnigraph_core.spark.merge.views import opened, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.spark.merge.ranges import Portion
    from omnigraph_core.spark.merge.views import Job, ViewPlace
    from omnigraph_core.spark.runner import Runner

_PAIR: Final = "pair"
_CHANGED: Final = "changed"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions to compare in some columns, or in all."""

    before: ViewPlace | None
    after: ViewPlace | None
    columns: tuple[str, ...] | None


def compare_portion(job: Job, pair: Pair, portion: Portion) -> str:
    """Keep the rows of a range that differ: ids, and where they are in both."""
    known = portion.known(_PAIR)
    found = changed_among(opened(pair.before), opened(pair.after), known, pair.columns)
    rows = pa.table({"id": found.ids, "before": found.before, "after": found.after}, schema=STAYED)
    return job.scratch.put_tables(_CHANGED, {_CHANGED: rows})


def changed_rows_by(
    runner: Runner,
    job: Job,
    before: RowView | None,
    after: RowView | None,
    columns: Sequence[str] | None,
) -> ChangedRows:
    """What `compare.changes.changed_rows` finds, by the tasks of a runner.

    Raises:
        JobFailed: a task could not be carried out.
    """
    tasks = list(pair_tasks(job, _PAIR, before, after, columns))
    read = read_all(runner, job, tasks)
    chosen = None if columns is None else tuple(columns)
    pair = Pair(place_of(before), place_of(after), chosen)
    work = partial(compare_portion, job, pair)
    kept = by_ranges(runner, job, read, work, name="compare rows")
    found = [job.scratch.read_tables(name).values() for name in kept]
    # Ranges ascend, and so do the ids in each.
    rows = pa.concat_tables([STAYED.empty_table(), *chain.from_iterable(found)])
    return ChangedRows(
        ids=rows.column("id").combine_chunks(),
        before=rows.column("before").to_numpy(),
        after=rows.column("after").to_numpy(),
    )
