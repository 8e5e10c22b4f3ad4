"""The reading half of `Omnigraph`: queries at any snapshot, their plans, the indexes they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core import settings
from omnigraph_core.engine import branching, indexing
from omnigraph_core.engine.beyond import (
    AUTO,
    LOCAL,
    SPARK,
    check_engine,
    chosen,
    execute_on_spark,
)
from omnigraph_core.engine.plans import Facts, explain_read, profile_read
from omnigraph_core.engine.workers import workers_for
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.exec.context import iter_table_keys
from omnigraph_core.exec.graph_data import GraphData
from omnigraph_core.exec.guard import check_limits
from omnigraph_core.exec.result import QueryResult
from omnigraph_core.exec.run import Limits, execute
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.job_report import SparkResults, job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.snapshot import Snapshot
from omnigraph_core.policy.model import Action
from omnigraph_core.topology.memory import shared_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.engine.indexing import IndexReport
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.exec.guard import Cancellation
    from omnigraph_core.exec.queries import QueryCache
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.plan.report import PlanReport
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.derived import DerivedFiles


class Reads:
    """What answers questions about a graph and changes none of its rows."""

    _context: GraphContext
    _queries: QueryCache
    _embedder: Embedder
    _derived: DerivedFiles
    _rights: Rights

    def query(
        self,
        target: str | ReadTarget | Snapshot,
        source: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
        max_age: float | None = None,
        engine: str = LOCAL,
    ) -> QueryResult:
        """Run a read on one snapshot, whatever others commit meanwhile.

        Args:
            target: a branch by name, a commit, a tag, or a snapshot: reading from a snapshot asks
                the store for nothing but rows.
            source: query text; `name` picks one of several queries.
            timeout: seconds after which the query stops.
            memory: bytes its rows may take.
            cancellation: stops it from another thread.
            max_age: seconds the newest known commit of a branch counts as the newest.
            engine: `local` runs it in this process, `spark` on Spark, `auto` on Spark if more rows
                are expected than OMNIGRAPH_SPARK_ROWS. No answer depends on it.

        Raises:
            CompileError: every problem of the query.
            QueryNotFound: the text has no query of that name.
            NotFoundError: no such branch, commit or tag.
            ParameterError: every parameter that is missing, undeclared or of the wrong type.
            ConfigError: it is a mutation, a limit is below zero, or there is no such engine.
            QueryStopped: it needs too much memory or time, or was cancelled.
            JobFailed: Spark could not carry it out.
        """
        check_engine(engine)
        snapshot = self._snapshot_to_read(target, max_age)
        limits = Limits(timeout, memory, cancellation)
        return self._answer(snapshot, source, name, params, limits, engine)

    def run_query_at(
        self,
        version: int,
        source: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str = MAIN,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
        engine: str = LOCAL,
    ) -> QueryResult:
        """Run a read on a branch as it was at one of its manifest versions.

        Raises:
            SnapshotNotFound: that version never was, or cleanup has removed it.
            And what `query` raises.
        """
        check_engine(engine)
        self._rights.demand(Action.READ, branch=branch)
        snapshot = branching.state_at_version(self._context, branch, version).snapshot
        limits = Limits(timeout, memory, cancellation)
        return self._answer(snapshot, source, name, params, limits, engine)

    def explain(
        self,
        target: str | ReadTarget | Snapshot,
        source: str,
        name: str | None = None,
        *,
        engine: str = LOCAL,
    ) -> PlanReport:
        """How a read would be carried out: steps, expected rows, filters, indexes. Runs nothing.

        Args:
            engine: what `query` would be given; with another than `local` the report says where
                the query would run. Its steps are those of this process.

        Raises:
            CompileError: every problem of the query.
            QueryNotFound: the text has no query of that name.
            NotFoundError: no such branch, commit or tag.
        """
        check_engine(engine)
        snapshot = self._snapshot_to_read(target, None)
        catalog = accepted_catalog(snapshot.schema)
        read = self._queries.read(source, name, catalog)
        return explain_read(self._data(snapshot, catalog), read, engine)

    def profile(
        self,
        target: str | ReadTarget | Snapshot,
        source: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> PlanReport:
        """Run a read and tell the rows and seconds of each step beside what was expected.

        Raises:
            What `query` raises.
        """
        snapshot = self._snapshot_to_read(target, None)
        catalog = accepted_catalog(snapshot.schema)
        read = self._queries.read(source, name, catalog)
        limits = Limits(timeout, memory, cancellation)
        graph = self._data(snapshot, catalog)
        return profile_read(graph, read, params, self._embedder, limits)

    def ensure_indices(
        self, *, branch: str = MAIN, engine: str = AUTO, actor: str | None = None
    ) -> SparkResults[IndexReport]:
        """Build what is missing of every index the schema asks for, with at most one commit.

        Tables as another branch made them are left to that branch. No answer depends on an index.

        Args:
            engine: who builds, as for `optimize`.

        Raises:
            BranchNotFound: there is none of that name.
            JobFailed: Spark could not carry it out; nothing was committed.
        """
        actor = self._rights.demand(Action.ADMIN, actor=actor)
        workers = workers_for(engine, self._context, branch)
        with job_facts(operation="index", branch=branch) as report:
            indexes = indexing.ensure_indices(self._context, branch, actor=actor, workers=workers)
        return SparkResults(indexes, spark=report.result)

    def index_status(self, target: str | ReadTarget | Snapshot = MAIN) -> tuple[IndexReport, ...]:
        """How much every index the schema asks for covers.

        Raises:
            NotFoundError: no such branch, commit or tag.
        """
        return indexing.index_status(self._context, self._snapshot_to_read(target, None))

    def _snapshot_to_read(
        self, target: str | ReadTarget | Snapshot, max_age: float | None
    ) -> Snapshot:
        """The snapshot, if it may be read."""
        if isinstance(target, Snapshot):
            self._rights.demand(Action.READ, branch=target.branch)
            return target
        branch = target if isinstance(target, str) else target.branch
        if branch is None:
            assert isinstance(target, ReadTarget)
            return self._rights.demand_at(self._context, Action.READ, target).snapshot
        self._rights.demand(Action.READ, branch=branch)
        check_limits(max_age=max_age)
        age = settings.READ_MAX_AGE.read() if max_age is None else max_age
        return self._context.recent(branch, age)[1].snapshot

    def _answer(
        self,
        snapshot: Snapshot,
        source: str,
        name: str | None,
        params: Mapping[str, object] | None,
        limits: Limits,
        engine: str,
    ) -> QueryResult:
        catalog = accepted_catalog(snapshot.schema)
        read = self._queries.read(source, name, catalog)
        graph = self._data(snapshot, catalog)
        is_beyond = engine != LOCAL and (
            chosen(engine, read.plan, Facts(graph), catalog).engine == SPARK
        )
        if not is_beyond:
            rows = execute(graph, read, params, self._embedder, limits)
            return QueryResult(read.plan.ir.name, read.columns, rows, snapshot)
        commit_id, types = snapshot.commit.graph_commit_id, iter_table_keys(read.plan.ir.pipeline)
        with job_facts(commit=commit_id, branch=snapshot.branch, type=types) as report:
            rows = execute_on_spark(graph, read, params, self._embedder, limits)
        return QueryResult(read.plan.ir.name, read.columns, rows, snapshot, spark=report.result)

    def _data(self, snapshot: Snapshot, catalog: Catalog) -> GraphData:
        return GraphData(self._context, snapshot, catalog, shared_cache(), self._derived)
