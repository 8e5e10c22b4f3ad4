"""Maintenance as `Omnigraph` offers it: optimize, topology, cleanup and verify."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.engine.beyond import AUTO
from omnigraph_core.engine.cleanup import cleanup
from omnigraph_core.engine.linking import build_topology
from omnigraph_core.engine.optimize import optimize
from omnigraph_core.engine.verify import verify
from omnigraph_core.engine.workers import workers_for
from omnigraph_core.history.retention import retention
from omnigraph_core.job_report import SparkResults, job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import timedelta

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.engine.linking import TopologyReport
    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.engine.verifying.model import VerifyReport
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.storage.derived import DerivedFiles


class Upkeep:
    """What keeps a graph fast, small and sound; no row changes."""

    _context: GraphContext
    _derived: DerivedFiles
    _rights: Rights

    def optimize(
        self,
        *,
        branch: str = MAIN,
        include_inherited: bool = False,
        engine: str = AUTO,
        actor: str | None = None,
    ) -> SparkResults[TableOptimizeStats]:
        """Compact tables and complete their indexes; the rows stay the same.

        Args:
            include_inherited: also tables of a branch that are as another branch made them. They
                are left alone otherwise: rewritten, they would share no files any more.
            engine: who does the work: `local` is this process, `spark` executors of Spark, `auto`
                these where they are on other machines and the branch has very many rows.

        Returns:
            What was done to each table, or why nothing was; `spark` of the tuple has the jobs.

        Raises:
            BranchNotFound: there is none of that name.
            ConflictError: schema or branch moved meanwhile; nothing was committed.
            JobFailed: Spark could not carry it out; nothing was committed.
        """
        actor = self._rights.demand(Action.ADMIN, actor=actor)
        with job_facts(operation="optimize", branch=branch) as report:
            tables = optimize(
                self._context,
                branch,
                include_inherited=include_inherited,
                actor=actor,
                workers=workers_for(engine, self._context, branch),
            )
        return SparkResults(tables, spark=report.result)

    def build_topology(
        self, *, branch: str = MAIN, edge_types: Sequence[str] = (), engine: str = AUTO
    ) -> SparkResults[TopologyReport]:
        """Keep who is linked to whom as files beside the graph, before the first reader asks.

        Readers of the newest commit map these files; without them they resolve the ids of all
        edges. No answer depends on a file.

        Args:
            edge_types: names of the only ones to do; by default all.
            engine: as for `optimize`.

        Raises:
            BranchNotFound: there is none of that name.
            ConfigError: no such edge type, or files beside graphs are switched off.
            JobFailed, StorageError: a file could not be made.
        """
        self._rights.demand(Action.READ, branch=branch)
        workers = workers_for(engine, self._context, branch)
        with job_facts(operation="topology", branch=branch) as report:
            edges = build_topology(
                self._context, self._derived, branch, edge_types, workers=workers
            )
        return SparkResults(edges, spark=report.result)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta | None = None,
        branches: Collection[str] | None = None,
        is_preview: bool = False,
        engine: str = AUTO,
    ) -> CleanupReport:
        """Remove versions that are neither among the newest `keep` nor younger than `older_than`.

        Heads, tags, held snapshots, merge bases of branches and whatever is younger than `grace`
        stay in any case.

        Args:
            branches: the only ones that versions are taken from; those of the others all stay.
                Files that nothing needs go in any case.
            engine: who lists and removes the files of tables, as for `optimize`; `auto` goes by
                the rows of main.

        Raises:
            ConfigError: neither is given, or `grace` is too short for running writers.
            BranchNotFound: one of the branches is not there, nor was.
            JobFailed: Spark could not carry it out; what was removed is gone.
        """
        self._rights.demand(Action.ADMIN)
        policy = retention(keep, older_than, grace)
        chosen = None if branches is None else {name.strip() for name in branches}
        workers = workers_for(engine, self._context, MAIN)
        with job_facts(operation="cleanup") as report:
            removed = cleanup(
                self._context, policy, branches=chosen, is_preview=is_preview, workers=workers
            )
        return replace(removed, spark=report.result)

    def verify(self, branch: str | None = None, *, is_deep: bool = False) -> VerifyReport:
        """Check that a branch, or all branches and tags, are whole. Nothing is changed.

        Args:
            is_deep: every version that is kept, what indexes find, and all rows by the rules of
                the schema; otherwise heads alone, and no rows are read.

        Raises:
            BranchNotFound: there is none of that name.
        """
        self._rights.demand(Action.READ)
        return verify(self._context, branch, is_deep=is_deep)
