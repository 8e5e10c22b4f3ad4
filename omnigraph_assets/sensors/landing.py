"""Watches the drop directory: files that have settled become one load for each branch.

A tick lists the directory, and opens the graph only when the listing, or what works on its
branches, has changed. What a branch was given is decided by the graph alone, from the digests of
published loads, which the load makes. The cursor has a fixed size, however many files wait.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import dagster as dg

from omnigraph_assets.assets.load import CHECK
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import busy_branches, count_runs, instance_of, last_run
from omnigraph_assets.loads.batching import Candidate, Refused, batch_name, next_batch
from omnigraph_assets.loads.plan import BATCH, landing_of, table_keys, types_in
from omnigraph_assets.loads.run_records import (
    Load,
    LoadedTypes,
    claimed_files,
    drop_abandoned,
    loaded_contents,
    refused_loads,
)
from omnigraph_assets.metadata import RUN_TAG
from omnigraph_assets.names import Names
from omnigraph_assets.resources.landing import (
    DroppedFile,
    DropProblem,
    DropStore,
    moved_files,
    quarantine,
)
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_assets.sensors.backoff import seconds_to_wait
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, NotFoundError, StorageError
from omnigraph_core.schema.catalog import Catalog

BATCH_TAG: Final = "omnigraph/batch"
"""Names the files of a run and the commit it starts from."""
FILES_TAG: Final = "omnigraph/files"
"""Names the files alone: they are refused together whatever the branch was at."""
LOOK_AGAIN_SECONDS: Final = 60.0
"""After so long, files that wait are looked at again though nothing has changed."""
_INTERVAL: Final = 4
"""Seconds; less than the five of the daemon's loop, so that every loop evaluates the sensor."""
_ABANDONED_US: Final = 60_000_000
"""How long a planned load may take to be staged before its run counts as gone with its process."""
_LOOKED_THROUGH: Final = 4 << 20
"""Bytes of small files that one tick looks through for their types."""
_LOOKED_AT: Final = 32
"""Files that it opens for that, one after the other: in a bucket each one is a request."""
_PROBLEMS: Final = 32
"""Problems of a drop directory that are reported one by one."""
_KEY: Final = 8
"""Characters by which the cursor knows a problem."""


@dataclass(frozen=True, slots=True)
class _Cursor:
    """What the last evaluation has seen, and when."""

    seen: str = ""
    at: float = 0.0
    reason: str = ""
    reported: str = ""
    """Keys of the problems that were reported, the newest first."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """What was decided about the files of one branch."""

    request: dg.RunRequest | None = None
    reason: str | None = None
    events: tuple[dg.AssetObservation, ...] = ()
    problems: tuple[DropProblem, ...] = ()


def build_drop_sensor(config: GraphConfig, state: AcceptedState, job: Any) -> dg.SensorDefinition:
    """The sensor of a graph's drop directory."""
    names = Names(config.name)

    @dg.sensor(
        name=names.named("drops_sensor"),
        job=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Loads files that were dropped and have settled, one run for each branch.",
    )
    def drops_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        store, now = landing_of(config), time.time()
        problems: list[DropProblem] = []
        files = store.list(problems.append)
        latest = (now - config.settle_seconds) * 1_000_000
        waiting: dict[str, list[DroppedFile]] = defaultdict(list)
        for file in files:
            if file.stamp <= latest:
                waiting[file.branch].append(file)
        unsettled = len(files) - sum(map(len, waiting.values()))
        hint = f"{unsettled} files have not settled yet" if unsettled else ""
        last = _read_cursor(context.cursor)
        if not waiting and not problems:
            return dg.SensorResult(skip_reason=hint or "no file waits")
        busy = busy_branches(instance_of(context), config.name) & waiting.keys()
        seen = _signature(waiting, busy, problems)
        if seen == last.seen and now - last.at < LOOK_AGAIN_SECONDS:
            skip_reason = _joined(hint, last.reason)
            return dg.SensorResult(skip_reason=skip_reason, cursor=context.cursor)
        decisions = [_Decision(reason=f"a run works on `{branch}`") for branch in sorted(busy)]
        free = {branch: some for branch, some in waiting.items() if branch not in busy}
        if free:
            with config.open() as graph:
                decisions += [
                    _try_branch(instance_of(context), graph, config, state, store, branch, some)
                    for branch, some in free.items()
                ]
        problems += [problem for one in decisions for problem in one.problems]
        requests = [one.request for one in decisions if one.request is not None]
        reason = _joined(*(one.reason for one in decisions), _summary(problems))
        new, reported = _unreported(problems, last.reported)
        cursor = _Cursor("" if requests else seen, now, reason[:500], reported)
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else _joined(hint, reason) or "no file waits",
            cursor=json.dumps(asdict(cursor)),
            dynamic_partitions_requests=_new_partitions(instance_of(context), names, requests),
            asset_events=[
                *(_observation(names, problem) for problem in new),
                *(event for one in decisions for event in one.events),
            ],
        )

    return drops_sensor


def _read_cursor(text: str | None) -> _Cursor:
    """The last evaluation; a cursor of another release counts as none."""
    try:
        return _Cursor(**json.loads(text or "{}"))
    except (ValueError, TypeError):
        return _Cursor()


def _signature(
    waiting: dict[str, list[DroppedFile]], busy: Iterable[str], problems: Iterable[DropProblem]
) -> str:
    """Changes with the files that wait, with which of their branches are worked on, and with what
    cannot be loaded."""
    digest = hashlib.sha256(json.dumps(sorted(busy)).encode())
    for files in waiting.values():
        for file in files:
            digest.update(file.id.encode())
    for key in sorted(map(_key, problems)):
        digest.update(key.encode())
    return digest.hexdigest()


def _key(problem: DropProblem) -> str:
    return hashlib.sha256(f"{problem}\n{problem.id}".encode()).hexdigest()[:_KEY]


def _unreported(problems: Iterable[DropProblem], reported: str) -> tuple[list[DropProblem], str]:
    """The problems to report now, and what is reported then: of many problems the first ones."""
    known = [reported[at : at + _KEY] for at in range(0, len(reported), _KEY)]
    shown = {_key(problem): problem for problem in sorted(problems, key=str)[:_PROBLEMS]}
    keys = list(dict.fromkeys([*shown, *known]))[:_PROBLEMS]
    return [problem for key, problem in shown.items() if key not in known], "".join(keys)


def _joined(*reasons: str | None) -> str:
    return "; ".join(reason for reason in reasons if reason)


def _summary(problems: list[DropProblem]) -> str | None:
    if not problems:
        return None
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"left out: {min(map(str, problems))}{more}"


def _observation(names: Names, problem: DropProblem) -> dg.AssetObservation:
    return dg.AssetObservation(
        names.drops,
        description=f"left out: {problem}",
        metadata={"file": repr(problem.address), "problem": problem.problem},
    )


def _new_partitions(
    instance: dg.DagsterInstance, names: Names, requests: list[dg.RunRequest]
) -> list[dg.AddDynamicPartitionsRequest]:
    if not requests:
        return []
    known = set(instance.get_dynamic_partitions(names.branches.name or ""))
    new = {str(request.partition_key) for request in requests} - known
    return [names.branches.build_add_request(sorted(new))] if new else []


def _try_branch(
    instance: dg.DagsterInstance,
    graph: Omnigraph,
    config: GraphConfig,
    state: AcceptedState,
    store: DropStore,
    branch: str,
    files: list[DroppedFile],
) -> _Decision:
    """What is decided about a branch; what is wrong with it keeps no other branch waiting."""
    try:
        reason = skip_reason(graph, state, branch)
        if reason is not None:
            return _Decision(reason=reason)
        return _evaluate_branch(instance, graph, config, state.catalog, store, branch, files)
    except (OSError, StorageError, ConfigError, NotFoundError) as problem:
        return _Decision(reason=f"the files of `{branch}` cannot be looked at: {problem}")


def skip_reason(graph: Omnigraph, state: AcceptedState, branch: str) -> str | None:
    """Why the files of a branch have to wait; None if they need not."""
    if branch not in graph.branch_list():  # also a name that no branch can have
        return f"there is no branch `{branch}`"
    schema = graph.schema_show(branch).hash
    if schema != state.schema_hash:  # runs would be refused until nobody tries any more
        return f"the schema of `{branch}` is not that of the definitions"
    return None


def _evaluate_branch(
    instance: dg.DagsterInstance,
    graph: Omnigraph,
    config: GraphConfig,
    catalog: Catalog,
    store: DropStore,
    branch: str,
    files: list[DroppedFile],
) -> _Decision:
    names, incarnation = Names(config.name), graph.branch_get(branch).incarnation
    drop_abandoned(graph, branch, before=time.time_ns() // 1000 - _ABANDONED_US)
    claimed = claimed_files(graph, branch, incarnation)
    free = {file.address: file for file in files if file.id not in claimed}
    candidates = [Candidate(file.address, file.id) for file in free.values()][:BATCH]
    by_id = {file.id: file for file in free.values()}
    refused = [
        Refused(frozenset(file.id for file in load.files), _batch_of(instance, run_id))
        for run_id, load in refused_loads(graph, branch, incarnation).items()
        if all(file.id in by_id for file in load.files)
        and (load.types is None or _is_of_everything(graph, branch, load, store, by_id, catalog))
    ]
    batch = next_batch(candidates, refused)
    unloadable = [free[file.address] for file in batch.unloadable]
    events, problems = _quarantine(store, unloadable, names)
    if not batch.files:
        reason = None if free else f"loads under way have the files of `{branch}`"
        return _Decision(None, reason, events, problems)
    chosen = [free[file.address] for file in batch.files]
    head = graph.head_commit_id_for_branch(branch)
    key = f"{branch}@{head}:{','.join(sorted(file.id for file in chosen))}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    attempt = count_runs(instance, BATCH_TAG, digest)
    seconds = seconds_to_wait(instance, BATCH_TAG, digest, attempt)
    if seconds > 0:
        reason = (
            f"{len(chosen)} files of `{branch}` failed {attempt} times: look at their runs; "
            f"they are tried again in {seconds / 60:.0f} min"
        )
        return _Decision(None, reason, events, problems)
    types = _types_of(store, chosen, catalog)
    request = _request(names, branch, chosen, types, digest, attempt)
    return _Decision(request, None, events, problems)


def _batch_of(instance: dg.DagsterInstance, run_id: str) -> str | None:
    """The name of the batch that a load was made from; None if somebody else asked for it."""
    made = last_run(instance, RUN_TAG, run_id)
    return None if made is None else made.dagster_run.tags.get(FILES_TAG)


def _is_of_everything(
    graph: Omnigraph,
    branch: str,
    load: Load,
    store: DropStore,
    files: Mapping[str, DroppedFile],
    catalog: Catalog,
) -> bool:
    """Whether a load left out no type that its files have and the branch lacks.

    If it did, somebody chose its types: edges alone, say, are refused for the lack of their ends,
    and that is no fault of the file.
    """
    digests = {file.digest for file in load.files}
    loaded = loaded_contents(graph, branch, load.incarnation, digests)
    given = [
        LoadedTypes(load.types) | loaded.get(file.digest, LoadedTypes(frozenset()))
        for file in load.files
    ]
    every = table_keys(catalog)
    if all(types.covers(every) for types in given):
        return True
    found = _types_of(store, [files[file.id] for file in load.files], catalog)
    return found is not None and all(types.covers(found) for types in given)


def _types_of(
    store: DropStore, files: list[DroppedFile], catalog: Catalog
) -> frozenset[str] | None:
    """The types of some small files together; None if they are large, or nobody can tell."""
    if len(files) > _LOOKED_AT or sum(file.size for file in files) > _LOOKED_THROUGH:
        return None
    found: set[str] = set()
    for file in files:
        try:
            types = types_in(store, file, catalog)
        except (OSError, StorageError):  # taken back, or not ours to read: the load reports it
            return None
        if types is None:
            return None
        found |= types
    return frozenset(found) or None


def _quarantine(
    store: DropStore, files: Iterable[DroppedFile], names: Names
) -> tuple[tuple[dg.AssetObservation, ...], tuple[DropProblem, ...]]:
    """Quarantine files; the ones that were moved, and those that cannot be."""
    reason = "refused even when it was loaded alone: the checks of the last load show why"
    problems: list[DropProblem] = []
    moved = tuple(
        dg.AssetObservation(
            names.drops, description=reason, metadata={"file": file.address, "quarantine": address}
        )
        for file, address in moved_files(
            files, lambda file: quarantine(store, file, {"problem": reason}), problems.append
        )
    )
    return moved, tuple(problems)


def _request(
    names: Names,
    branch: str,
    files: list[DroppedFile],
    types: frozenset[str] | None,
    batch: str,
    attempt: int,
) -> dg.RunRequest:
    plan = {"config": {"files": [file.address for file in files]}}
    selection = [] if types is None else [names.table(key) for key in sorted(types)]
    checks = [dg.AssetCheckKey(key, CHECK) for key in selection]
    return dg.RunRequest(
        run_key=f"{batch}#{attempt}",
        partition_key=branch,
        run_config={"ops": {names.named("load"): {"ops": {names.named("plan"): plan}}}},
        tags={BATCH_TAG: batch, FILES_TAG: batch_name(file.id for file in files)},
        asset_selection=[*selection, names.manifest] if types is not None else None,
        asset_check_keys=[*checks, dg.AssetCheckKey(names.manifest, "staged_records")]
        if types is not None
        else None,
    )
