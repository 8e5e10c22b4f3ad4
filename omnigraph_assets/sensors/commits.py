"""Keeps Dagster in step with the graph: one look serves branches, commits of others and the schema.

Nothing but the heads is read unless a branch has moved. The cursor holds the heads that were shown,
and the pool limits that were applied: a limit that somebody changes by hand afterwards stays.
"""

import json
from collections.abc import Mapping
from typing import Any

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
            heads = {name: graph.head_commit_id_for_branch(name) for name in graph.branch_list()}
            events = _foreign_changes(graph, config, seen, heads)
            request = refresh_request(graph, state, refresh.name)
        partitions = partition_requests(instance_of(context), names, heads)
        return dg.SensorResult(
            run_requests=[] if request is None else [request],
            skip_reason=None
            if request is not None
            else f"{len(events)} materialisations of others' commits",
            cursor=json.dumps({"heads": heads, "limits": limits}),
            dynamic_partitions_requests=partitions,
            asset_events=events,
        )

    return commits


def _foreign_changes(
    graph: Omnigraph, config: GraphConfig, seen: Mapping[str, str], heads: Mapping[str, str]
) -> list[dg.AssetMaterialization]:
    """Materialisations of what others have changed since the last look."""
    events: list[dg.AssetMaterialization] = []
    for branch, head in heads.items():
        if seen.get(branch) != head and _is_foreign(graph, config, branch, seen.get(branch)):
            published = changes_since(graph, branch, seen.get(branch), head)
            events += materialisations(graph, config, published)
    return events


def _is_foreign(graph: Omnigraph, config: GraphConfig, branch: str, seen: str | None) -> bool:
    """Whether anybody else has committed since; runs of the platform show their own commits."""
    for commit in graph.list_commits(branch):
        if commit.graph_commit_id == seen:
            return False
        if commit.actor_id != config.actor:
            return True
    return False


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
