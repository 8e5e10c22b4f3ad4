"""Sensors that keep Dagster in step with the graph: its branches, its commits, its schema."""

import json
from typing import Any

import dagster as dg

from omnigraph_assets.accepted import AcceptedState
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.loads import changes_since
from omnigraph_assets.names import Names
from omnigraph_assets.publish import materialisations
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import GraphNotFound

_RUNNING = dg.DefaultSensorStatus.RUNNING


def build_branch_sync(config: GraphConfig) -> dg.SensorDefinition:
    """Partitions are what branches there are."""
    names = Names(config.name)

    @dg.sensor(
        name=names.named("branch_sync"),
        minimum_interval_seconds=15,
        default_status=_RUNNING,
        description="Adds a partition for each branch, and removes those of deleted ones.",
    )
    def branch_sync(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        partitions = names.branches
        known = set(context.instance.get_dynamic_partitions(partitions.name or ""))
        with config.open() as graph:
            there = set(graph.branch_list())
        requests: list[Any] = []
        if new := sorted(there - known):
            requests.append(partitions.build_add_request(new))
        if gone := sorted(known - there):
            requests.append(partitions.build_delete_request(gone))
        told = f"{len(new)} added, {len(gone)} removed"
        return dg.SensorResult(skip_reason=told, dynamic_partitions_requests=requests)

    return branch_sync


def build_manifest_watch(config: GraphConfig) -> dg.SensorDefinition:
    """Commits that others made are shown as materialisations of what they changed."""

    @dg.sensor(
        name=Names(config.name).named("manifest_watch"),
        minimum_interval_seconds=15,
        default_status=_RUNNING,
        description="Shows commits that were made outside of Dagster.",
    )
    def manifest_watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        seen: dict[str, str] = json.loads(context.cursor or "{}")
        events: list[dg.AssetMaterialization] = []
        with config.open() as graph:
            heads = {name: graph.head_commit_id_for_branch(name) for name in graph.branch_list()}
            for branch, head in heads.items():
                if seen.get(branch) != head and _is_foreign(graph, config, branch, seen):
                    published = changes_since(graph, branch, seen.get(branch), head)
                    events += materialisations(graph, config, published)
        told = f"{len(events)} materialisations of others' commits"
        return dg.SensorResult(skip_reason=told, cursor=json.dumps(heads), asset_events=events)

    return manifest_watch


def _is_foreign(graph: Omnigraph, config: GraphConfig, branch: str, seen: dict[str, str]) -> bool:
    """Whether anybody else has committed since; what the platform did it has told already."""
    for commit in graph.list_commits(branch):
        if commit.graph_commit_id == seen.get(branch):
            return False
        if commit.actor_id != config.actor:
            return True
    return False


def build_schema_watch(
    config: GraphConfig, state: AcceptedState | None, job: Any
) -> dg.SensorDefinition:
    """Definitions follow the accepted schema."""
    names = Names(config.name)

    @dg.sensor(
        name=names.named("schema_watch"),
        job=job,
        minimum_interval_seconds=15,
        default_status=_RUNNING,
        description="Refreshes the definitions when the accepted schema of main is another one.",
    )
    def schema_watch(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        try:
            with config.open() as graph:
                found = graph.schema_show().hash
        except GraphNotFound:
            return dg.SkipReason(f"there is no graph at {config.uri} yet")
        if state is not None and found == state.schema_hash:
            return dg.SkipReason("the definitions are those of the accepted schema")
        return dg.RunRequest(run_key=found)

    return schema_watch
