"""Loads as the engine keeps them: each is a run in the run registry, and this says what of it.

The hash of the run's operation holds branch, schema, mode, types and all files, each with the
digest of its content and the id of the file: beginning the same load again finds the same run, and
the published runs of a branch tell which contents, and which types of them, it has. A load is
staged under the id of its run and published with one compare-and-swap.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.loads.guard import LoadFacts, PublishDecision, decide
from omnigraph_core.engine import run_calls
from omnigraph_core.engine.evolution import schema_changed_by
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ConflictError,
    NotFoundError,
    OmnigraphError,
)
from omnigraph_core.history.runs import RunRecord, RunStatus
from omnigraph_core.history.snapshots import ReadTarget

_PREFIX: Final = "drops"
_EVERY_TYPE: Final = "*"


@dataclass(frozen=True, slots=True, order=True)
class LoadFile:
    """A file of a load: the digest of its content, and the id under which it was dropped."""

    digest: str
    id: str


@dataclass(frozen=True, slots=True)
class Load:
    """What a load is of, as its run records it."""

    incarnation: str
    schema: str
    mode: str
    types: frozenset[str] | None
    """Table keys of the types that it loads; None for all."""
    files: tuple[LoadFile, ...]

    @property
    def operation_hash(self) -> str:
        types = _EVERY_TYPE if self.types is None else ",".join(sorted(self.types))
        files = ",".join(f"{file.digest}.{file.id}" for file in sorted(self.files))
        return "|".join((_PREFIX, self.incarnation, self.schema, self.mode, types, files))


def load_of(run: RunRecord) -> Load | None:
    """What a run loads; None for the runs of others."""
    parts = (run.operation_hash or "").split("|")
    if len(parts) != 6 or parts[0] != _PREFIX:
        return None
    _, incarnation, schema, mode, types, files = parts
    pairs = (entry.partition(".") for entry in files.split(","))
    return Load(
        incarnation,
        schema,
        mode,
        None if types == _EVERY_TYPE else frozenset(types.split(",")),
        tuple(LoadFile(digest, id) for digest, _, id in pairs),
    )


def begin_load(
    graph: Omnigraph,
    config: GraphConfig,
    branch: str,
    files: Mapping[str, LoadFile],
    types: frozenset[str] | None,
    schema: str,
) -> RunRecord:
    """The run of a load, begun and planned if it is not under way.

    Args:
        files: by the address of each file what is recorded of it; a content that several have is
            read from the first of them.

    Raises:
        BranchNotFound: there is no such branch.
        ConfigError: a file has gone since it was listed; the others may be planned again.
    """
    incarnation = graph.branch_get(branch).incarnation
    load = Load(incarnation, schema, config.mode, types, tuple(files.values()))
    run = run_calls.begin_load(graph, branch, operation_hash=load.operation_hash)
    if run.status is RunStatus.RUNNING:
        first: dict[str, str] = {}
        for address, file in files.items():
            first.setdefault(file.digest, address)
        try:
            graph.plan_load(
                run.run_id,
                list(first.values()),
                branch=branch,
                engine=config.engine,
                mode=config.mode,
                embed=config.embed,
                types=None if types is None else sorted(types),
            )
        except (OSError, OmnigraphError):  # as long as it runs, its files wait for it
            reject_load(graph, run.run_id)
            raise
    return run


@dataclass(frozen=True, slots=True)
class LoadedTypes:
    """Which types of a content a branch was given: all, or these."""

    types: frozenset[str] | None

    def covers(self, types: Iterable[str]) -> bool:
        return self.types is None or self.types.issuperset(types)

    def __or__(self, other: "LoadedTypes") -> "LoadedTypes":
        if self.types is None or other.types is None:
            return LoadedTypes(None)
        return LoadedTypes(self.types | other.types)


def loaded_contents(
    graph: Omnigraph,
    branch: str,
    incarnation: str,
    digests: Iterable[str],
    *,
    but: str | None = None,
) -> dict[str, LoadedTypes]:
    """By digest the types of each of these contents that a branch was given by a load.

    Args:
        but: the id of a run that does not count.
    """
    sought = frozenset(digests)
    loads = (
        load
        # In the order of their lives: one that is published meanwhile is not missed.
        for status in (RunStatus.RUNNING, RunStatus.PUBLISHED)
        for run in run_calls.runs_of_operations(graph, branch, status, _loads_any_of(sought))
        if (load := load_of(run)) is not None
        and load.incarnation == incarnation
        and run.run_id != but
        # One that runs may be committed by a process that was killed before it could record it.
        and (status is RunStatus.PUBLISHED or run_calls.is_landed(graph, run))
    )
    found: dict[str, LoadedTypes] = {}
    for load in loads:
        for file in load.files:
            if file.digest not in sought:
                continue
            loaded = LoadedTypes(load.types)
            found[file.digest] = found[file.digest] | loaded if file.digest in found else loaded
    return found


def _loads_any_of(digests: frozenset[str]) -> Callable[[str], bool]:
    """Whether an operation hash names one of these contents: a branch has had many loads."""

    def is_sought(operation: str) -> bool:
        head, _, files = operation.rpartition("|")
        return head.startswith(_PREFIX) and any(
            entry.partition(".")[0] in digests for entry in files.split(",")
        )

    return is_sought


def claimed_files(graph: Omnigraph, branch: str, incarnation: str) -> frozenset[str]:
    """The ids of files that loads under way have to do with."""
    loads = _loads(graph, branch, incarnation, RunStatus.RUNNING)
    return frozenset(file.id for load in loads for file in load.files)


def _loads(graph: Omnigraph, branch: str, incarnation: str, status: RunStatus) -> list[Load]:
    loads = (load_of(run) for run in graph.list_runs(target_branch=branch, status=status))
    return [load for load in loads if load is not None and load.incarnation == incarnation]


def facts_of(graph: Omnigraph, run: RunRecord, load: Load) -> LoadFacts:
    """What the guard decides by."""
    try:
        incarnation: str | None = graph.branch_get(run.target_branch).incarnation
        schema: str | None = graph.schema_show(run.target_branch).hash
    except BranchNotFound:
        incarnation = schema = None
    before: tuple[str, ...] = ()
    if incarnation is not None and run.status is RunStatus.RUNNING:
        digests = {file.digest for file in load.files}
        loaded = loaded_contents(graph, run.target_branch, incarnation, digests, but=run.run_id)
        before = tuple(
            file.digest
            for file in load.files
            if file.digest in loaded and _is_repeated(load.types, loaded[file.digest])
        )
    return LoadFacts(
        status=str(run.status),
        branch=run.target_branch,
        planned_incarnation=load.incarnation,
        incarnation=incarnation,
        planned_schema=load.schema,
        schema=schema,
        is_staged=_is_staged(graph, run),
        loaded_before=before,
        lock_owner=None if incarnation is None else schema_changed_by(graph, run.target_branch),
    )


def _is_repeated(types: frozenset[str] | None, loaded: LoadedTypes) -> bool:
    """Whether a load would give a branch a type of a content once more."""
    if types is None or loaded.types is None:
        return True
    return not types.isdisjoint(loaded.types)


def _is_staged(graph: Omnigraph, run: RunRecord) -> bool:
    if run.status is not RunStatus.RUNNING:
        return run.status is RunStatus.PUBLISHED
    return run_calls.is_audited(graph, run.run_id) or run_calls.is_landed(graph, run)


def decision_of(graph: Omnigraph, run_id: str) -> PublishDecision:
    """What the guard decides about a load.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: the run is not one of a load.
    """
    run = graph.get_run(run_id)
    load = load_of(run)
    if load is None:
        raise ConflictError(f"run {run_id} loads no drops", hint="publish it with its own command")
    return decide(facts_of(graph, run, load))


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


def publish_load(graph: Omnigraph, config: GraphConfig, run_id: str) -> Published:
    """Make the rows of a load visible, once however often it is asked.

    Raises:
        DataError: the branch has moved, and the rows break a rule of it now.
        ConflictError: it was given up, or others changed the branch every time.
        BranchNotFound: its target is gone.
    """
    run = run_calls.publish_load(graph, run_id, engine=config.engine)
    assert run.published_snapshot_id is not None
    seconds = (run.updated_at - run.created_at) / 1_000_000
    commit = graph.get_commit(run.published_snapshot_id)
    if commit.idempotency_key != run_id:  # there was no row to load
        version = commit.manifest_version
        return Published(run.target_branch, commit.graph_commit_id, version, seconds, ())
    found = published_commit(graph, run.target_branch, commit.graph_commit_id)
    return Published(found.branch, found.commit_id, found.manifest_version, seconds, found.tables)


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


def refused_loads(graph: Omnigraph, branch: str, incarnation: str) -> dict[str, Load]:
    """By the ids of their runs the loads of a branch that were refused for their rows."""
    runs = graph.list_runs(target_branch=branch, status=RunStatus.FAILED)
    loads = {run.run_id: load_of(run) for run in runs}
    return {
        run_id: load
        for run_id, load in loads.items()
        if load is not None and load.incarnation == incarnation
    }


def staged_runs(graph: Omnigraph) -> tuple[RunRecord, ...]:
    """Loads whose rows are staged and not published, oldest first."""
    running = graph.list_runs(status=RunStatus.RUNNING)
    return tuple(run for run in running if load_of(run) is not None and _is_staged(graph, run))


def published_loads(graph: Omnigraph, *, since: int) -> tuple[RunRecord, ...]:
    """Loads that were published after a time in microseconds, the oldest first; those of branches
    that are gone left out."""
    moved = [
        run
        for run in run_calls.runs_moved_since(graph, since, RunStatus.PUBLISHED)
        if load_of(run) is not None
    ]
    branches = set(graph.branch_list()) if moved else set[str]()
    published = [run for run in moved if run.target_branch in branches]
    return tuple(sorted(published, key=lambda run: run.updated_at))


def drop_abandoned(graph: Omnigraph, branch: str, *, before: int) -> None:
    """Give up loads of a branch that were planned some time ago, and never staged.

    Only for a branch that no run is working on: their files are planned again.
    """
    for run in graph.list_runs(target_branch=branch, status=RunStatus.RUNNING):
        if load_of(run) is not None and run.updated_at < before and not _is_staged(graph, run):
            reject_load(graph, run.run_id)
