"""Who does the work of merges and diffs on executors, and which of it is worth that."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.compare.changes import changed_rows, whole_of
from omnigraph_core.ids import new_ulid
from omnigraph_core.job_report import job_facts, table_facts
from omnigraph_core.merge.rows import merge_rows
from omnigraph_core.merge.stage_rows import stage_rows
from omnigraph_core.spark.merge.comparing import changed_rows_by
from omnigraph_core.spark.merge.deciding import merge_rows_by
from omnigraph_core.spark.merge.staging import stage_rows_by
from omnigraph_core.spark.merge.views import Job
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.version_rows import match_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omnigraph_core.compare.changes import ChangedRows
    from omnigraph_core.compare.view import RowView
    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.row_merge import MergedViews, RowMerge
    from omnigraph_core.merge.undecided import Undecided
    from omnigraph_core.merge.workers import MergeWorkers
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

PORTION_ROWS: Final = 1 << 20
"""Rows that one task has to do with, about: of all sides together."""


@dataclass(frozen=True, slots=True)
class Executors:
    """Compares, decides and writes rows by the tasks of a runner."""

    runner: Runner
    job: Job

    def changed_rows(
        self, before: RowView | None, after: RowView | None, columns: Sequence[str] | None = None
    ) -> ChangedRows:
        with table_facts(view.table.location for view in (before, after) if view is not None):
            return changed_rows_by(self.runner, self.job, before, after, columns)

    def merge_rows(
        self,
        label: str,
        views: MergedViews,
        options: MergeOptions,
        *,
        undecided: Undecided | None = None,
        keep_ids: Callable[[int], bool] | None = None,
    ) -> RowMerge:
        # What `keep_ids` tells saves requests where little has changed.
        with job_facts(type=label):
            return merge_rows_by(self.runner, self.job, label, views, options, undecided)

    def stage_rows(self, merge: RowMerge, table: Table) -> Table | None:
        with job_facts(type=merge.label):
            return stage_rows_by(self.runner, self.job, merge, table)


@dataclass(frozen=True, slots=True)
class ByNumber:
    """Others for tables of which so many rows have changed, this process for the rest."""

    open_others: Callable[[], MergeWorkers]
    """Asked when the first such table comes, and again for each."""
    many: int
    """0: every table of which rows have to be looked at."""

    def changed_rows(
        self, before: RowView | None, after: RowView | None, columns: Sequence[str] | None = None
    ) -> ChangedRows:
        if self._are_many((before, after)):
            return self.open_others().changed_rows(before, after, columns)
        return changed_rows(before, after, columns)

    def merge_rows(
        self,
        label: str,
        views: MergedViews,
        options: MergeOptions,
        *,
        undecided: Undecided | None = None,
        keep_ids: Callable[[int], bool] | None = None,
    ) -> RowMerge:
        pairs = (views.base, views.ours), (views.base, views.theirs)
        merge = self.open_others().merge_rows if self._are_many(*pairs) else merge_rows
        return merge(label, views, options, undecided=undecided, keep_ids=keep_ids)

    def stage_rows(self, merge: RowMerge, table: Table) -> Table | None:
        writes = merge.writes
        if len(writes.taken) + len(writes.combined) + len(writes.leaving) < self.many:
            return stage_rows(merge, table)
        return self.open_others().stage_rows(merge, table)

    def _are_many(self, *pairs: tuple[RowView | None, RowView | None]) -> bool:
        """Whether versions have so many rows, all together, that others do not share."""
        if not self.many:
            return True
        views = [view for pair in pairs for view in pair if view is not None]
        if sum(view.table.count_rows() for view in views) < self.many:
            return False  # without a look at which rows they share
        return sum(_unshared(*pair) for pair in pairs) >= self.many


def _unshared(before: RowView | None, after: RowView | None) -> int:
    if before is None or after is None:
        return whole_of(before).count + whole_of(after).count
    match = match_rows(before.table, after.table)
    return match.before_own.count + match.after_own.count


@contextmanager
def executors(
    runner: Runner, store: Store, *, portion_rows: int = PORTION_ROWS
) -> Iterator[Executors]:
    """Workers on a runner; what their tasks leave for each other is gone afterwards."""
    job = Job(store.root.text, new_ulid(), portion_rows)
    try:
        yield Executors(runner, job)
    finally:
        Scratch(store, job.id).clear()
