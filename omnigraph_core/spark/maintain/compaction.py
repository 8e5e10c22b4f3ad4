"""Compaction by many tasks: tables come in, each rewritten group of fragments is one task.

Planning reads metadata, a task rewrites files and records where their rows came from, and the
driver stages one version per table. A task that is lost leaves files that nobody names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.job_report import table_facts
from omnigraph_core.storage.compact import (
    TARGET_ROWS,
    plan_compaction,
    run_task,
    stage_compaction,
)
from omnigraph_core.storage.places import TablePlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Fragments of a table to be rewritten together, as `plan_compaction` tells them."""

    place: TablePlace
    task: str


def rewrite(work: Rewriting) -> str:
    """Rewrite the fragments; what `stage_compaction` needs."""
    return run_task(work.place.open(), work.task)


def compact_tables(
    runner: Runner, tables: Sequence[Table], *, target_rows: int = TARGET_ROWS
) -> list[Table | None]:
    """Each table in fewer and fuller files; None where nothing is gained.

    Args:
        target_rows: about how many rows a fragment is to have.

    Raises:
        JobFailed: a task could not be carried out.
    """
    plans = [plan_compaction(table, target_rows=target_rows) for table in tables]
    tasks = [
        (number, Rewriting(TablePlace.of(tables[number]), task))
        for number, plan in enumerate(plans)
        for task in (() if plan is None else plan.tasks)
    ]
    with table_facts(work.place.location for _, work in tasks):
        results = runner.map(rewrite, [work for _, work in tasks], name="compact")
    done: list[list[str]] = [[] for _ in tables]
    for (number, _), result in zip(tasks, results, strict=True):
        done[number].append(result)
    return [
        stage_compaction(table, given) if given else None
        for table, given in zip(tables, done, strict=True)
    ]
