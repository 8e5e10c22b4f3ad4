"""Watches the drop directory: files that have settled become one load for each branch.

What a branch was given is decided by the graph alone, from the digests of published loads. The
cursor only spares work: it holds what was seen of the files that wait.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg

from omnigraph_assets.accepted import AcceptedState
from omnigraph_assets.batching import Candidate, next_batch
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.drops import (
    LOADED,
    DroppedFile,
    DropStore,
    digest_of,
    open_drops,
    quarantine,
)
from omnigraph_assets.instance import busy_branches, count_runs
from omnigraph_assets.loads import claimed_digests, drop_abandoned, loaded_digests, refused_loads
from omnigraph_assets.names import Names
from omnigraph_assets.pending import BATCH
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound

BATCH_TAG: Final = "omnigraph/batch"
ATTEMPTS: Final = 3
"""Runs of the same files on the same commit; after that somebody has to look."""
_ABANDONED_US: Final = 60_000_000
"""How long a planned load may take to be staged before its run counts as gone with its process."""


@dataclass(frozen=True, slots=True)
class _Tick:
    """What one look at a branch has decided."""

    request: dg.RunRequest | None = None
    reason: str | None = None
    events: tuple[dg.AssetObservation, ...] = ()


def build_drop_sensor(config: GraphConfig, state: AcceptedState, job: Any) -> dg.SensorDefinition:
    """The sensor of a graph's drop directory."""
    names = Names(config.name)

    @dg.sensor(
        name=names.named("drops_sensor"),
        job=job,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Loads files that were dropped and have settled, one run for each branch.",
    )
    def drops_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        assert config.drops is not None
        store = open_drops(config.drops)
        seen: dict[str, list[Any]] = json.loads(context.cursor or "{}")
        waiting, cursor = _settled(store, seen, config.settle_seconds)
        busy = busy_branches(context.instance)
        with config.open() as graph:
            ticks = [
                _Tick(reason=reason)
                if (reason := _hindrance(graph, state, branch, busy)) is not None
                else _look(context.instance, graph, config, store, branch, files)
                for branch, files in waiting.items()
            ]
        requests = [tick.request for tick in ticks if tick.request is not None]
        reasons = [tick.reason for tick in ticks if tick.reason is not None]
        unsettled = len(cursor) - sum(map(len, waiting.values()))
        if unsettled:
            reasons.append(f"{unsettled} files have not settled yet")
        known = set(context.instance.get_dynamic_partitions(names.branches.name or ""))
        new = {str(request.partition_key) for request in requests} - known
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(reasons) or "no file waits",
            cursor=json.dumps(cursor),
            dynamic_partitions_requests=[names.branches.build_add_request(sorted(new))]
            if new
            else [],
            asset_events=[event for tick in ticks for event in tick.events],
        )

    return drops_sensor


def _settled(
    store: DropStore, seen: dict[str, list[Any]], settle_seconds: float
) -> tuple[dict[str, list[tuple[DroppedFile, str]]], dict[str, list[Any]]]:
    """Files that are as they were at the last look, with their digests; and the next cursor."""
    waiting: dict[str, list[tuple[DroppedFile, str]]] = defaultdict(list)
    cursor: dict[str, list[Any]] = {}
    latest = time.time() - settle_seconds
    for file in store.list():
        size, stamp, digest = seen.get(file.address, [None, None, None])
        is_same = (size, stamp) == file.signature
        if is_same and file.stamp <= latest * 1_000_000:
            digest = digest or digest_of(store, file)
            waiting[file.branch].append((file, digest))
        cursor[file.address] = [*file.signature, digest if is_same else None]
    return waiting, cursor


def _hindrance(
    graph: Omnigraph, state: AcceptedState, branch: str, busy: Container[str]
) -> str | None:
    """Why the files of a branch have to wait; None if they need not."""
    if branch in busy:
        return f"a run works on `{branch}`"
    try:
        schema = graph.schema_show(branch).hash
    except BranchNotFound:
        return f"there is no branch `{branch}`"
    if schema != state.schema_hash:  # runs would be refused until nobody tries any more
        return f"the schema of `{branch}` is not that of the definitions"
    return None


def _look(
    instance: dg.DagsterInstance,
    graph: Omnigraph,
    config: GraphConfig,
    store: DropStore,
    branch: str,
    files: list[tuple[DroppedFile, str]],
) -> _Tick:
    incarnation = graph.branch_get(branch).incarnation
    drop_abandoned(graph, branch, before=time.time_ns() // 1000 - _ABANDONED_US)
    claimed = claimed_digests(graph, branch, incarnation)
    left = list(_not_loaded(graph, store, branch, incarnation, files))
    free = [(file, digest) for file, digest in left if digest not in claimed]
    by_address = {file.address: file for file, _ in free}
    candidates = [Candidate(file.address, digest, file.stamp) for file, digest in free[:BATCH]]
    batch = next_batch(candidates, refused_loads(graph, branch, incarnation))
    events = tuple(
        _put_away(store, by_address[file.address], Names(config.name)) for file in batch.hopeless
    )
    if not batch.files:
        reason = f"loads under way have the files of `{branch}`" if left and not free else None
        return _Tick(reason=reason, events=events)
    head = graph.head_commit_id_for_branch(branch)
    request, reason = _request(instance, config, branch, head, batch.files)
    return _Tick(request, reason, events)


def _not_loaded(
    graph: Omnigraph,
    store: DropStore,
    branch: str,
    incarnation: str,
    files: list[tuple[DroppedFile, str]],
) -> Iterator[tuple[DroppedFile, str]]:
    """The files whose content the branch has not; the others are put away."""
    loaded = loaded_digests(graph, branch, incarnation)
    for file, digest in files:
        if digest not in loaded:
            yield file, digest
        elif store.look(file) == file:
            store.put_away(file, LOADED)


def _put_away(store: DropStore, file: DroppedFile, names: Names) -> dg.AssetObservation:
    reason = "refused even when it was loaded alone: the checks of the last load tell why"
    address = quarantine(store, file, {"problem": reason})
    return dg.AssetObservation(
        names.drops, description=reason, metadata={"file": file.address, "quarantine": address}
    )


def _request(
    instance: dg.DagsterInstance,
    config: GraphConfig,
    branch: str,
    head: str,
    files: tuple[Candidate, ...],
) -> tuple[dg.RunRequest | None, str | None]:
    digests = ",".join(sorted(file.digest for file in files))
    batch = hashlib.sha256(f"{branch}@{head}:{digests}".encode()).hexdigest()[:32]
    attempt = count_runs(instance, BATCH_TAG, batch)
    if attempt >= ATTEMPTS:
        return None, f"{len(files)} files of `{branch}` failed {attempt} times: look at their runs"
    names = Names(config.name)
    plan = {"config": {"files": [file.address for file in files]}}
    request = dg.RunRequest(
        run_key=f"{batch}#{attempt}",
        partition_key=branch,
        run_config={"ops": {names.named("load"): {"ops": {names.named("plan"): plan}}}},
        tags={BATCH_TAG: batch},
    )
    return request, None
