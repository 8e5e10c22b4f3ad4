"""Keeps Dagster in step with the graph: one look serves branches, commits of others and the schema.

Nothing but the heads is read unless a branch has moved. A tick ends in time however many have: it
looks at the others in the next one. The cursor holds the heads that were shown, the branch that is
next, and the pool limits that were applied: a limit that somebody changes by hand afterwards stays.
"""

import json
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import instance_of
from omnigraph_assets.loads.run_records import changes_since
from omnigraph_assets.names import Names
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_assets.sensors.branches import partition_requests
from omnigraph_assets.sensors.publish import materialisations
from omnigraph_assets.sensors.schema import refresh_request
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import NotFoundError

BUDGET_SECONDS: Final = 20.0
"""After so long a tick looks at no further branch: Dagster drops what a tick of 60 s has found."""


def build_commits_sensor(
    config: GraphConfig, state: AcceptedState, refresh: dg.JobDefinition
) -> dg.SensorDefinition:
    """The sensor that follows branches, commits of others, and the schema."""
    names = Names(config.name)

    @dg.sensor(
        name=names.named("commits"),
        job=refresh,
        # The daemon looks every 5 s: 29 s are 30 s then, and 30 s would often be 35 s.
        minimum_interval_seconds=29,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Adds and removes partitions as branches come and go, shows commits that were "
        "made outside of Dagster, and refreshes the definitions when main has another schema.",
    )
    def commits(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor: dict[str, Any] = json.loads(context.cursor or "{}")
        seen: dict[str, str] = cursor.get("heads", {})
        limits = apply_limits(instance_of(context), config, cursor.get("limits", {}))
        with config.open() as graph:
            request = refresh_request(instance_of(context), graph, state, refresh.name)
            branches = _from(graph.branch_list(), cursor.get("next", ""))
            heads, events = _look(graph, config, branches, seen)
        following = branches[len(heads) :]
        kept = {branch: seen[branch] for branch in following if branch in seen}
        shown = {branch: head for branch, head in heads.items() if head is not None}
        return dg.SensorResult(
            run_requests=[] if request is None else [request],
            skip_reason=None
            if request is not None
            else f"{len(events)} materialisations of others' commits",
            cursor=json.dumps(
                {"heads": kept | shown, "next": next(iter(following), ""), "limits": limits}
            ),
            dynamic_partitions_requests=partition_requests(instance_of(context), names, branches),
            asset_events=events,
        )

    return commits


def _from(branches: Sequence[str], first: str) -> tuple[str, ...]:
    """All branches, beginning with the one that the last tick did not get to."""
    ordered = sorted(branches)
    at = bisect_left(ordered, first)
    return (*ordered[at:], *ordered[:at])


def _look(
    graph: Omnigraph, config: GraphConfig, branches: Sequence[str], seen: Mapping[str, str]
) -> tuple[dict[str, str | None], list[dg.AssetMaterialization]]:
    """The heads of the first branches, as many as there is time for, and what others changed there.

    The head of a branch that is gone, or damaged, stays the one that was seen.
    """
    ends_at = time.monotonic() + BUDGET_SECONDS
    heads: dict[str, str | None] = {}
    events: list[dg.AssetMaterialization] = []
    for branch in branches:
        if heads and time.monotonic() >= ends_at:
            break
        try:
            heads[branch], found = _look_at(graph, config, branch, seen.get(branch))
        except NotFoundError:
            heads[branch] = seen.get(branch)
        else:
            events += found
    return heads, events


def _look_at(
    graph: Omnigraph, config: GraphConfig, branch: str, seen: str | None
) -> tuple[str, list[dg.AssetMaterialization]]:
    """The head of a branch, and what others have changed since the last look.

    Runs of the platform show their own commits, except that no run shows what a merge has changed.
    """
    newest = graph.snapshot(branch).image.commits
    head = newest[-1].graph_commit_id
    if head == seen:
        return head, []
    fork = graph.branch_get(branch).forked_from
    # A new branch has what it was forked from, which was shown there.
    since = seen if seen is not None or fork is None else fork.commit_id

    def shown_by_runs() -> Iterator[bool]:
        """Of each commit, the newest first: all are read only if the newest do not go so far."""
        for read in (lambda: reversed(newest), lambda: graph.list_commits(branch)):
            for commit in read():
                if commit.graph_commit_id == since:
                    return
                yield commit.actor_id == config.actor and commit.merged_parent_commit_id is None

    if all(shown_by_runs()):
        return head, []
    published = changes_since(graph, branch, since, head)
    return head, materialisations(graph, config, published, has_previews=False)


def apply_limits(
    instance: dg.DagsterInstance, config: GraphConfig, applied: Mapping[str, int]
) -> dict[str, int]:
    """Set the limits of the graph's pools to those of the settings, unless that was done before."""
    names = Names(config.name)
    limits = {
        names.embedding_pool: config.embedding_limit,
        names.maintenance_pool: config.maintenance_limit,
    }
    for pool, limit in limits.items():
        if applied.get(pool) != limit:
            instance.event_log_storage.set_concurrency_slots(pool, limit)
    return limits
