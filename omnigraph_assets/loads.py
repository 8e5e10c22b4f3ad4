"""Loads as the engine keeps them: each is a run in the run registry, and this says what of it.

Files come in, a run whose branch holds their rows goes out. The hash of the run's operation tells
branch, schema, mode and the digests of all files: beginning the same load again finds the same run,
and the published runs of a branch tell which contents it has. Rows are checked before they are
staged, so a run whose branch has moved holds sound rows and may be published at any time.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph_assets.batching import Refused
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.guard import LoadFacts, Ruling, rule
from omnigraph_core.engine.evolution import schema_changed_by
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.run_calls import runs_moved_since
from omnigraph_core.errors import BranchNotFound, ConflictError, DataError, NotFoundError
from omnigraph_core.history.runs import RunRecord, RunStatus
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.job_report import job_facts
from omnigraph_core.violations import Violation

_PREFIX: Final = "drops"


@dataclass(frozen=True, slots=True)
class Load:
    """What a load is of, as its run tells it."""

    incarnation: str
    schema: str
    mode: str
    digests: tuple[str, ...]

    @property
    def operation_hash(self) -> str:
        return "|".join((_PREFIX, self.incarnation, self.schema, self.mode, ",".join(self.digests)))


def load_of(run: RunRecord) -> Load | None:
    """What a run loads; None for the runs of others."""
    parts = (run.operation_hash or "").split("|")
    if len(parts) != 5 or parts[0] != _PREFIX:
        return None
    return Load(parts[1], parts[2], parts[3], tuple(parts[4].split(",")))


def begin_load(
    graph: Omnigraph, config: GraphConfig, branch: str, digests: Iterable[str], schema: str
) -> RunRecord:
    """The run of a load, begun if it is not under way.

    Raises:
        BranchNotFound: there is no such branch.
    """
    incarnation = graph.branch_get(branch).incarnation
    load = Load(incarnation, schema, config.mode, tuple(sorted(digests)))
    return graph.begin_run(branch, operation_hash=load.operation_hash)


@dataclass(frozen=True, slots=True)
class Staged:
    """What became of the rows of a load: staged, or refused for these reasons."""

    run_id: str
    rows: dict[str, int]
    violations: tuple[Violation, ...] = ()
    problem: str | None = None
    spark: Mapping[str, Any] | None = None
    """The jobs of a load on Spark, and the Spark UI that shows them."""


def stage_load(
    graph: Omnigraph,
    config: GraphConfig,
    run: RunRecord,
    addresses: Iterable[str],
    progress: Callable[[Any], None] | None = None,
) -> Staged:
    """Put the rows of files on the branch of a run, all or none; done before, it is not repeated.

    A load that is refused has failed, and its files may be planned again.

    Raises:
        OmnigraphError: nothing is wrong with the rows; the run goes on, and may be staged again.
    """
    if run.status is RunStatus.PUBLISHED:
        return Staged(run.run_id, {})
    try:
        with job_facts(run=run.run_id, branch=run.target_branch):
            loaded = graph.load(
                list(addresses),
                branch=run.run_branch,
                mode=config.mode,
                embed=config.embed,
                engine=config.engine,
                idempotency_key=f"load:{run.run_id}",
                progress=progress,
            )
    except DataError as refused:
        graph.fail_run(run.run_id)
        return Staged(run.run_id, {}, refused.violations, str(refused))
    rows = {table.table_key: table.rows_loaded for table in loaded.tables}
    return Staged(run.run_id, rows, spark=loaded.spark)


def loaded_digests(graph: Omnigraph, branch: str, incarnation: str) -> frozenset[str]:
    """The digests of all files whose rows a branch was given by a load."""
    return _digests(graph, branch, incarnation, RunStatus.PUBLISHED)


def claimed_digests(graph: Omnigraph, branch: str, incarnation: str) -> frozenset[str]:
    """The digests of files that loads under way have to do with."""
    return _digests(graph, branch, incarnation, RunStatus.RUNNING)


def _digests(graph: Omnigraph, branch: str, incarnation: str, status: RunStatus) -> frozenset[str]:
    loads = (load_of(run) for run in graph.list_runs(target_branch=branch, status=status))
    own = (load for load in loads if load is not None and load.incarnation == incarnation)
    return frozenset(digest for load in own for digest in load.digests)


def facts_of(graph: Omnigraph, run: RunRecord, load: Load) -> LoadFacts:
    """What the guard is to know of a load."""
    try:
        incarnation: str | None = graph.branch_get(run.target_branch).incarnation
        schema: str | None = graph.schema_show(run.target_branch).hash
    except BranchNotFound:
        incarnation = schema = None
    before = frozenset[str]()
    if incarnation is not None and run.status is RunStatus.RUNNING:
        before = loaded_digests(graph, run.target_branch, incarnation)
    return LoadFacts(
        status=str(run.status),
        branch=run.target_branch,
        planned_incarnation=load.incarnation,
        incarnation=incarnation,
        planned_schema=load.schema,
        schema=schema,
        is_staged=_is_staged(graph, run),
        loaded_before=tuple(digest for digest in load.digests if digest in before),
        lock_owner=None if incarnation is None else schema_changed_by(graph, run.target_branch),
    )


def _is_staged(graph: Omnigraph, run: RunRecord) -> bool:
    if run.status is not RunStatus.RUNNING:
        return run.status is RunStatus.PUBLISHED
    try:
        return graph.head_commit_id_for_branch(run.run_branch) != run.base_snapshot_id
    except BranchNotFound:
        return False


def ruling_of(graph: Omnigraph, run_id: str) -> Ruling:
    """What the guard says of a load.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: the run is not one of a load.
    """
    run = graph.get_run(run_id)
    load = load_of(run)
    if load is None:
        raise ConflictError(f"run {run_id} loads no drops", hint="publish it with its own command")
    return rule(facts_of(graph, run, load))


def reject_load(graph: Omnigraph, run_id: str) -> RunRecord:
    """Give a load up, so that its files may be planned again; one that has ended as it is."""
    run = graph.get_run(run_id)
    if run.status is not RunStatus.RUNNING:
        return run
    try:
        return graph.abort_run(run_id)
    except ConflictError:  # it has ended meanwhile, maybe well
        return graph.get_run(run_id)


@dataclass(frozen=True, slots=True)
class PublishedTable:
    table_key: str
    rows: int
    fragments: int
    table_version: int


@dataclass(frozen=True, slots=True)
class Published:
    """One publish, and the tables it changed, nodes before edges."""

    branch: str
    commit_id: str
    manifest_version: int
    seconds: float
    tables: tuple[PublishedTable, ...]


def publish_load(graph: Omnigraph, run_id: str) -> Published:
    """Make the rows of a load visible, once however often it is asked.

    Raises:
        MergeConflicts: others changed the same rows; the run goes on.
        ConflictError: it was given up.
        BranchNotFound: its branch, or its target, is gone.
    """
    run = graph.publish_run(run_id)
    assert run.published_snapshot_id is not None
    told = published_commit(graph, run.target_branch, run.published_snapshot_id)
    seconds = (run.updated_at - run.created_at) / 1_000_000
    return Published(told.branch, told.commit_id, told.manifest_version, seconds, told.tables)


def published_commit(graph: Omnigraph, branch: str, commit_id: str) -> Published:
    """What a commit changed."""
    return changes_since(graph, branch, graph.get_commit(commit_id).parent_commit_id, commit_id)


def changes_since(
    graph: Omnigraph, branch: str, before_id: str | None, commit_id: str
) -> Published:
    """What changed between two commits; everything, if the first one is not known."""
    after = graph.snapshot_of(ReadTarget(snapshot_id=commit_id))
    before = _versions_at(graph, before_id)
    changed = [
        PublishedTable(key, entry.row_count, entry.fragment_count, entry.table_version)
        for key, entry in after.tables.items()
        if before.get(key) != entry.table_version
    ]
    changed.sort(key=lambda table: (not table.table_key.startswith("node:"), table.table_key))
    return Published(branch, commit_id, after.manifest_version, 0.0, tuple(changed))


def _versions_at(graph: Omnigraph, commit_id: str | None) -> dict[str, int]:
    """The versions of all tables at a commit; none if cleanup has removed it, or it never was."""
    try:
        if commit_id is None:
            return {}
        tables = graph.snapshot_of(ReadTarget(snapshot_id=commit_id)).tables
    except NotFoundError:
        return {}
    return {key: entry.table_version for key, entry in tables.items()}


def refused_loads(graph: Omnigraph, branch: str, incarnation: str) -> tuple[Refused, ...]:
    """The loads of a branch that were refused for their rows."""
    runs = graph.list_runs(target_branch=branch, status=RunStatus.FAILED)
    loads = ((load_of(run), run.updated_at) for run in runs)
    return tuple(
        Refused(frozenset(load.digests), at)
        for load, at in loads
        if load is not None and load.incarnation == incarnation
    )


def staged_runs(graph: Omnigraph) -> tuple[RunRecord, ...]:
    """Loads whose rows are staged and not published, oldest first."""
    running = graph.list_runs(status=RunStatus.RUNNING)
    return tuple(run for run in running if load_of(run) is not None and _is_staged(graph, run))


def published_loads(graph: Omnigraph, *, since: int) -> tuple[RunRecord, ...]:
    """Loads that were published after a time in microseconds, the oldest first; those of branches
    that are gone left out."""
    branches = set(graph.branch_list())
    published = [
        run
        for run in runs_moved_since(graph, since, RunStatus.PUBLISHED)
        if run.target_branch in branches and load_of(run) is not None
    ]
    return tuple(sorted(published, key=lambda run: run.updated_at))


def drop_abandoned(graph: Omnigraph, branch: str, *, before: int) -> None:
    """Give up loads of a branch that were planned some time ago, and never staged.

    Only for a branch that no run is working on: their files are planned again.
    """
    for run in graph.list_runs(target_branch=branch, status=RunStatus.RUNNING):
        if load_of(run) is not None and run.updated_at < before and not _is_staged(graph, run):
            reject_load(graph, run.run_id)
