"""From files and replaced rows to a staged version of a table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.spark.ingest.removed import fragment_tasks, remove_from_fragment
from omnigraph_core.storage.fragments import StagedFragments, combine
from omnigraph_core.storage.staged import (
    addresses_in_files,
    stage_append,
    stage_delete_addresses,
    stage_overwrite,
    stage_removed,
)
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.spark.ingest.comparing import Comparison
    from omnigraph_core.spark.ingest.model import Job
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table


def stage_table(
    job: Job,
    table: Table,
    table_key: str,
    parts: Sequence[str],
    comparison: Comparison,
    dropped: Sequence[int],
    runner: Runner,
) -> UpdateTable | None:
    """The change of one table; None if there is none.

    Args:
        parts: what each part of the input has written, in their order.
        dropped: where rows are in all of these files that do not stay.
    """
    files = combine(table, [StagedFragments.from_json(text) for text in parts])
    if job.mode is LoadMode.OVERWRITE:
        staged, operation = stage_overwrite(table, files), TableOperation.OVERWRITE
    elif job.mode is LoadMode.APPEND:
        staged, operation = stage_append(table, files), TableOperation.APPEND
    else:
        staged, operation = _upserted(job, table, table_key, files, comparison, runner)
    if staged is not None and dropped:
        places = np.array(sorted(set(dropped)), np.int64)
        staged = stage_delete_addresses(staged, addresses_in_files(staged, files, places))
    return None if staged is None else UpdateTable.of(table_key, staged, operation)


def _upserted(
    job: Job,
    table: Table,
    table_key: str,
    files: StagedFragments,
    comparison: Comparison,
    runner: Runner,
) -> tuple[Table | None, TableOperation]:
    tasks = fragment_tasks({table_key: comparison.removed(table_key)}, comparison.versions)
    if not tasks:
        return stage_append(table, files), TableOperation.APPEND
    left = runner.map(partial(remove_from_fragment, job), tasks, name=f"replace in {table_key}")
    updated = [text for text in left if text is not None]
    emptied = [task.fragment for task, text in zip(tasks, left, strict=True) if text is None]
    return stage_removed(table, files, updated, emptied), TableOperation.UPSERT
