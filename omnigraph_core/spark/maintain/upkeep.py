"""Maintenance of a graph with the heavy part on executors; everything else is as in one process.

One commit for all tables, work done again on tables that moved meanwhile, and the policy asked
first: all of that is the engine's. Until the commit nothing is visible, whatever becomes of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.engine.upkeep import ensure_indices_by, optimize_by
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.spark.maintain.compaction import compact_tables
from omnigraph_core.spark.maintain.indexing import PART_ROWS, index_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.engine.indexing import IndexReport
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.engine.workers import Indexed, Wanted
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table


@dataclass(frozen=True, slots=True)
class Executors:
    """Works on tables by the tasks of a runner."""

    runner: Runner
    part_rows: int = PART_ROWS

    def compact(self, tables: Sequence[Table]) -> list[Table | None]:
        return compact_tables(self.runner, tables)

    def index(self, wanted: Sequence[Wanted]) -> list[Indexed]:
        return index_tables(self.runner, wanted, part_rows=self.part_rows)


def optimize_on(
    graph: Omnigraph,
    runner: Runner,
    *,
    branch: str = MAIN,
    include_inherited: bool = False,
    part_rows: int = PART_ROWS,
    actor: str | None = None,
) -> tuple[TableOptimizeStats, ...]:
    """Compact tables and complete their indexes, as `Omnigraph.optimize` does in one process.

    Args:
        part_rows: rows that one task indexes.

    Raises:
        BranchNotFound: there is none of that name.
        ConflictError: schema or branch moved meanwhile; nothing was committed.
        JobFailed: a task could not be carried out; nothing was committed.
    """
    workers = Executors(runner, part_rows)
    with job_facts(operation="optimize", branch=branch):
        return optimize_by(
            graph, workers, branch=branch, include_inherited=include_inherited, actor=actor
        )


def build_indices_on(
    graph: Omnigraph,
    runner: Runner,
    *,
    branch: str = MAIN,
    part_rows: int = PART_ROWS,
    actor: str | None = None,
) -> tuple[IndexReport, ...]:
    """Build what is missing of every index, as `Omnigraph.ensure_indices` does in one process.

    Args:
        part_rows: rows that one task indexes.

    Raises:
        BranchNotFound: there is none of that name.
        JobFailed: a task could not be carried out; nothing was committed.
    """
    with job_facts(operation="index", branch=branch):
        return ensure_indices_by(graph, Executors(runner, part_rows), branch=branch, actor=actor)
