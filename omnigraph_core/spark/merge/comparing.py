"""Two versions compared by tasks, each for one range of ids: views come in, changed rows go out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.changes import ChangedRows, KnownRows, changed_among
from omnigraph_core.spark.ingest.buckets import put_keys, read_bucket
from omnigraph_core.spark.merge.reading import OWN, STAYED, pair_tasks, read_all
from omnigraph_core.spark.merge.runs import ranges_of, read_slices, slices_of
from omnigraph_core.spark.merge.views import opened, place_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.compare.candidates import IdRange
    from omnigraph_core.compare.view import RowView
    from omnigraph_core.spark.ingest.buckets import Keys
    from omnigraph_core.spark.merge.runs import Run, Slice
    from omnigraph_core.spark.merge.views import Job, ViewPlace
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.scratch import Scratch

_PAIR: Final = "pair"
_CHANGED: Final = "changed"


@dataclass(frozen=True, slots=True)
class Portion:
    """The rows of one range of ids, and where they were put."""

    ids: IdRange
    slices: tuple[Slice, ...]

    def known(self, scratch: Scratch, what: str) -> KnownRows:
        """What has been read of two versions, by the name it was read under."""
        return KnownRows(
            self.rows(scratch, f"{what} before"),
            self.rows(scratch, f"{what} after"),
            read_slices(scratch, self.slices, f"{what} stayed", self.ids, STAYED),
        )

    def rows(self, scratch: Scratch, what: str) -> pa.Table:
        """Ids and addresses of own rows of one version."""
        return read_slices(scratch, self.slices, what, self.ids, OWN)


def portions_of(runs: Sequence[Run], portion_rows: int) -> list[Portion]:
    """All rows that were read, cut by id."""
    return [Portion(ids, slices_of(runs, ids)) for ids in ranges_of(runs, portion_rows)]


def put_tables(scratch: Scratch, kind: str, tables: Mapping[str, pa.Table]) -> Keys:
    """Keep some tables by name, for whoever asked."""
    whole = {name: (rows, np.zeros(rows.num_rows, np.uint16)) for name, rows in tables.items()}
    return put_keys(scratch, kind, whole, 1)


def read_tables(scratch: Scratch, kept: Keys) -> dict[str, pa.Table]:
    """What `put_tables` kept; tables without rows are not among it."""
    return {name: rows for name, ((_, rows),) in read_bucket(scratch, [(0, kept)], 0).items()}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions to compare in some columns, or in all."""

    before: ViewPlace | None
    after: ViewPlace | None
    columns: tuple[str, ...] | None


def compare_portion(job: Job, pair: Pair, portion: Portion) -> Keys:
    """Keep the rows of a range that differ: ids, and where they are in both."""
    known = portion.known(job.scratch, _PAIR)
    found = changed_among(opened(pair.before), opened(pair.after), known, pair.columns)
    rows = pa.table({"id": found.ids, "before": found.before, "after": found.after}, schema=STAYED)
    return put_tables(job.scratch, "changed", {_CHANGED: rows})


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
    runs = read_all(runner, job, tasks)
    chosen = None if columns is None else tuple(columns)
    pair = Pair(place_of(before), place_of(after), chosen)
    work = partial(compare_portion, job, pair)
    kept = runner.map(
        work, portions_of(runs, job.portion_rows) if runs else (), name="compare rows"
    )
    found = [read_tables(job.scratch, keys).get(_CHANGED) for keys in kept]
    # Ranges ascend, and so do the ids in each.
    rows = pa.concat_tables([STAYED.empty_table(), *(part for part in found if part is not None)])
    return ChangedRows(
        ids=rows.column("id").combine_chunks(),
        before=rows.column("before").to_numpy(),
        after=rows.column("after").to_numpy(),
    )
