"""Definitions follow the accepted schema of main."""

from typing import Any

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.names import Names
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import GraphNotFound


def refresh_request(
    graph: Omnigraph, state: AcceptedState | None, job_name: str
) -> dg.RunRequest | None:
    """A run that refreshes the definitions; None if they are those of the accepted schema."""
    found = graph.schema_show().hash
    if state is not None and found == state.schema_hash:
        return None
    return dg.RunRequest(run_key=found, job_name=job_name)


def build_first_schema_sensor(config: GraphConfig, job: Any) -> dg.SensorDefinition:
    """The only sensor of a graph that is not there yet: it waits for a schema."""

    @dg.sensor(
        name=Names(config.name).named("commits"),
        job=job,
        minimum_interval_seconds=14,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Makes the definitions as soon as there is a graph.",
    )
    def first_schema(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        try:
            with config.open() as graph:
                request = refresh_request(graph, None, job.name)
        except GraphNotFound:
            return dg.SkipReason(f"there is no graph at {config.uri} yet")
        return request or dg.SkipReason("the definitions are those of the accepted schema")

    return first_schema
