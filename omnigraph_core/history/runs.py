"""The run registry: every state of every run is one row, and the last row of a run is its state.

Rows are only appended, each decided on the version of the registry it follows: of several processes
that move one run out of a state, one does and the others are told. The branch of a run and its
merge are not made here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.clock import now_us
from omnigraph_core.errors import AlreadyExists, ConflictError, RunNotFound, StorageError
from omnigraph_core.history.actors import project_actors
from omnigraph_core.history.appends import append_chosen
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.layout import GRAPH_RUN_ACTORS, GRAPH_RUNS
from omnigraph_core.manifest.names import RUN_PREFIX
from omnigraph_core.storage.log import open_log, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.storage.log import Log
    from omnigraph_core.storage.session import Store


JOB_PREFIX: Final = "job:"
"""Begins the operation hash of a run that a server keeps account of a job with."""


class RunStatus(StrEnum):
    RUNNING = "running"
    PUBLISHED = "published"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it stands. Times are microseconds since the epoch.

    `base_snapshot_id` is the commit its branch was forked from, `published_snapshot_id` the commit
    that made its work visible. `is_expired` is judged when a run is looked at and never stored. A
    run whose `run_branch` is empty is a load in steps that bears its id, and has no branch.
    """

    run_id: str
    target_branch: str
    run_branch: str
    base_snapshot_id: str
    base_manifest_version: int
    operation_hash: str | None
    actor_id: str | None
    status: RunStatus
    published_snapshot_id: str | None
    created_at: int
    updated_at: int
    is_expired: bool = False
    """Running, but nothing was written for so long that its owner is taken for gone."""

    @property
    def is_job(self) -> bool:
        """Whether a server works in it, and publishes it at the end: the work of nobody else."""
        return (self.operation_hash or "").startswith(JOB_PREFIX)

    def to_json(self) -> dict[str, object]:
        """The same on every surface."""
        members = {name: getattr(self, name) for name in _STORED}
        return {**members, "status": str(self.status), "is_expired": self.is_expired}


def check_running(run: RunRecord, action: str) -> None:
    """
    Raises:
        ConflictError: the run has ended.
    """
    _check_status(run, action, RunStatus.RUNNING)


def mark_published(run: RunRecord, snapshot_id: str, *, now: int) -> RunRecord:
    """The run once its work is visible; a published one unchanged.

    Raises:
        ConflictError: it failed or was aborted.
    """
    if run.status is RunStatus.PUBLISHED:
        return run
    _check_status(run, "publish", RunStatus.RUNNING)
    return replace(_moved(run, RunStatus.PUBLISHED, now), published_snapshot_id=snapshot_id)


def mark_landed(run: RunRecord, snapshot_id: str, *, now: int) -> RunRecord:
    """The run once its work is seen in its target: that decides, whatever the record said."""
    if run.status is RunStatus.PUBLISHED:
        return run
    return replace(_moved(run, RunStatus.PUBLISHED, now), published_snapshot_id=snapshot_id)


def mark_active(run: RunRecord, *, now: int) -> RunRecord:
    """The run once its owner was heard of again; one that has ended unchanged."""
    return _moved(run, run.status, now) if run.status is RunStatus.RUNNING else run


def mark_aborted(run: RunRecord, *, now: int) -> RunRecord:
    """The run once it is given up.

    Raises:
        ConflictError: it was published, or aborted before.
    """
    _check_status(run, "abort", RunStatus.RUNNING, RunStatus.FAILED)
    return _moved(run, RunStatus.ABORTED, now)


def mark_failed(run: RunRecord, *, now: int) -> RunRecord:
    """The run once its work has failed; a failed one unchanged.

    Raises:
        ConflictError: it was published or aborted.
    """
    if run.status is RunStatus.FAILED:
        return run
    _check_status(run, "fail", RunStatus.RUNNING)
    return _moved(run, RunStatus.FAILED, now)


def _check_status(run: RunRecord, action: str, *allowed: RunStatus) -> None:
    if run.status not in allowed:
        raise ConflictError(
            f"cannot {action} run {run.run_id}: it is {run.status}",
            hint=f"only a run that is {' or '.join(allowed)} can be; begin another run",
        )


def _moved(run: RunRecord, status: RunStatus, now: int) -> RunRecord:
    # Clocks of processes differ; the time of a run never goes back.
    return replace(run, status=status, updated_at=max(now, run.updated_at))


_STORED: Final = tuple(field.name for field in fields(RunRecord) if field.name != "is_expired")
_TIMES: Final = ("created_at", "updated_at")

RUNS_SCHEMA: Final = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        # Counts the states of one run; equal times would not say which is the last.
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("target_branch", pa.string(), nullable=False),
        pa.field("run_branch", pa.string(), nullable=False),
        pa.field("base_snapshot_id", pa.string(), nullable=False),
        pa.field("base_manifest_version", pa.uint64(), nullable=False),
        pa.field("operation_hash", pa.string()),
        pa.field("actor_id", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("published_snapshot_id", pa.string()),
        *(pa.field(name, pa.timestamp("us"), nullable=False) for name in _TIMES),
    ]
)


@dataclass(frozen=True, slots=True)
class _State:
    sequence: int
    run: RunRecord


class RunRegistry:
    """The runs of one graph. Holds nothing: every call reads the registry as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(
        self,
        target_branch: str,
        base_snapshot_id: str,
        base_manifest_version: int,
        *,
        run_id: str | None = None,
        operation_hash: str | None = None,
        actor: str | None = None,
        has_branch: bool = True,
    ) -> RunRecord:
        """Register a run as running; with an operation hash, once.

        Args:
            run_id: chosen before, when the branch of the run is made first.
            has_branch: whether its work is done on a branch, or is a load in steps.

        Returns:
            The run. Another one than `run_id` when a run of that target and hash is running or
            published: the operation is under way, or done.

        Raises:
            AlreadyExists: a run has that id.
        """
        now = now_us()
        chosen = new_ulid() if run_id is None else run_id
        run = RunRecord(
            run_id=chosen,
            target_branch=target_branch,
            run_branch=f"{RUN_PREFIX}{chosen}" if has_branch else "",
            base_snapshot_id=base_snapshot_id,
            base_manifest_version=base_manifest_version,
            operation_hash=operation_hash,
            actor_id=actor,
            status=RunStatus.RUNNING,
            published_snapshot_id=None,
            created_at=now,
            updated_at=now,
        )
        return self._begin(run)

    def _begin(self, run: RunRecord) -> RunRecord:
        def unless_begun(log: Log) -> tuple[pa.Table, RunRecord]:
            if _states(log, pc.field("run_id") == run.run_id):
                raise AlreadyExists(f"a run `{run.run_id}` exists")
            same = _begun(log, run.target_branch, run.operation_hash)
            return (RUNS_SCHEMA.empty_table(), same) if same else (_encode(_State(0, run)), run)

        log, begun = append_chosen(self._store, GRAPH_RUNS, RUNS_SCHEMA, unless_begun)
        is_first = pc.field("sequence") == 0
        arrived = _encode(_State(0, begun))
        expected = log.count_rows(is_first & pc.field("actor_id").is_valid())
        project_actors(log, GRAPH_RUN_ACTORS, "run_id", arrived, expected=expected, where=is_first)
        return begun

    def get(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
        """
        log = open_log(self._store, GRAPH_RUNS)
        if log is None:
            raise _not_found(run_id)
        return _state_of(log, run_id).run

    def list(
        self,
        target_branch: str | None = None,
        status: RunStatus | None = None,
        *,
        since: int | None = None,
        is_sought: Callable[[str], bool] | None = None,
    ) -> tuple[RunRecord, ...]:
        """The runs, oldest first; of one target, in one state, or moved after a time, if given.

        Args:
            is_sought: which operation hashes to list; runs without one are left out then.
        """
        log = open_log(self._store, GRAPH_RUNS)
        if log is None:
            return ()
        own = None if target_branch is None else pc.field("target_branch") == target_branch
        return tuple(_runs(log, own, _wanted(status, since), is_sought))

    def find_by_operation_hash(self, target_branch: str, operation_hash: str) -> RunRecord | None:
        """The newest run of that target and hash, whatever became of it."""
        log = open_log(self._store, GRAPH_RUNS)
        return None if log is None else _newest(log, target_branch, operation_hash)

    def transition(self, run_id: str, change: Callable[[RunRecord], RunRecord]) -> RunRecord:
        """Move a run to another state: what `change` makes of the state it is in when this lands.

        Args:
            change: called again when another writer was first; returns the run itself to leave it.

        Raises:
            RunNotFound: there is none of that id.
            ConflictError: raised by `change`, or others were first every time.
        """

        def next_state(log: Log) -> tuple[pa.Table, RunRecord]:
            state = _state_of(log, run_id)
            run = change(state.run)
            if run == state.run:
                return RUNS_SCHEMA.empty_table(), run
            return _encode(_State(state.sequence + 1, run)), run

        return append_chosen(self._store, GRAPH_RUNS, RUNS_SCHEMA, next_state)[1]


def _begun(log: Log, target_branch: str, operation_hash: str | None) -> RunRecord | None:
    """The run that makes beginning another one of the same hash needless."""
    run = None if operation_hash is None else _newest(log, target_branch, operation_hash)
    is_live = run is not None and run.status in (RunStatus.RUNNING, RunStatus.PUBLISHED)
    return run if is_live else None


def _newest(log: Log, target_branch: str, operation_hash: str) -> RunRecord | None:
    same = (pc.field("target_branch") == target_branch) & (
        pc.field("operation_hash") == operation_hash
    )
    return max(_runs(log, same), key=_age, default=None)


def _state_of(log: Log, run_id: str) -> _State:
    found = _states(log, pc.field("run_id") == run_id)
    if not found:
        raise _not_found(run_id)
    return found[run_id]


def _not_found(run_id: str) -> RunNotFound:
    return RunNotFound(f"run '{run_id}' not found", hint="the list of runs shows their ids")


def _wanted(status: RunStatus | None, since: int | None) -> pa.Expression | None:
    """What to look for among the last states of runs."""
    wanted = None if status is None else pc.field("status") == str(status)
    if since is None:
        return wanted
    after = pc.field("updated_at") > pa.scalar(since, pa.timestamp("us"))
    return after if wanted is None else wanted & after


def _runs(
    log: Log,
    where: pa.Expression | None,
    wanted: pa.Expression | None = None,
    is_sought: Callable[[str], bool] | None = None,
) -> list[RunRecord]:
    states = _states(log, where, wanted, is_sought)
    return sorted((state.run for state in states.values()), key=_age)


def _age(run: RunRecord) -> tuple[int, str]:
    return run.created_at, run.run_id


def _states(
    log: Log,
    where: pa.Expression | None,
    wanted: pa.Expression | None = None,
    is_sought: Callable[[str], bool] | None = None,
) -> dict[str, _State]:
    """The last state of each run by id, if it is wanted. Rows of a run share what `where` names.

    Only those come out of Arrow: a registry has a few rows for every run there ever was.
    """
    rows = _last_of_each(read(log, where=where))
    if wanted is not None:
        rows = rows.filter(wanted)
    if is_sought is not None:
        hashes = rows["operation_hash"].to_pylist()
        kept = [text is not None and is_sought(text) for text in hashes]
        rows = rows.filter(pa.array(kept, pa.bool_()))
    return {state.run.run_id: state for state in _decode(rows, log.uri)}


def _last_of_each(rows: pa.Table) -> pa.Table:
    rows = rows.sort_by([("run_id", "ascending"), ("sequence", "ascending")])
    ids = rows["run_id"].combine_chunks()
    if not len(ids):
        return rows
    is_followed = pc.equal(ids[:-1], ids[1:])
    return rows.filter(pa.concat_arrays([pc.invert(is_followed), pa.array([True])]))


def _encode(state: _State) -> pa.Table:
    row = {name: getattr(state.run, name) for name in _STORED}
    return pa.Table.from_pylist([{**row, "sequence": state.sequence}], schema=RUNS_SCHEMA)


def _decode(rows: pa.Table, where: str) -> list[_State]:
    for name in _TIMES:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, rows[name].cast(pa.int64()))
    states = []
    for row in rows.to_pylist():
        sequence = row.pop("sequence")
        try:
            run = RunRecord(**{**row, "status": RunStatus(row["status"])})
        except ValueError as problem:
            raise StorageError(
                f"the run registry at {where} holds the status {row['status']!r}",
                hint="a newer release wrote it: upgrade omnigraph",
            ) from problem
        states.append(_State(sequence, run))
    return states
