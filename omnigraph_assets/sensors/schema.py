"""Definitions follow the accepted schema of main."""

import time
from itertools import takewhile
from typing import Any, Final

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import LIVE, instance_of, runs_of_job
from omnigraph_assets.names import Names
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import GraphNotFound

SCHEMA_TAG: Final = "omnigraph/schema"
FIRST_WAIT: Final = 60.0
"""Seconds from a failed refresh to the next one; each further wait is four times as long."""
_LONGEST_WAIT: Final = 3840.0
_LOOKED_BACK: Final = 8
"""Runs of the refresh that are counted: after so many failures the wait grows no more."""


def refresh_request(
    instance: dg.DagsterInstance, graph: Omnigraph, state: AcceptedState | None, job_name: str
) -> dg.RunRequest | None:
    """A run that refreshes the definitions; None if they are those of the accepted schema.

    None too while a refresh is under way, or when one has succeeded: who has no webserver reloads
    the definitions by hand. After one that failed there is another one.
    """
    found = graph.schema_show().hash
    if state is not None and found == state.schema_hash:
        return None
    runs = runs_of_job(instance, job_name, limit=_LOOKED_BACK)
    if runs and runs[0].dagster_run.status in LIVE:
        return None
    same = list(takewhile(lambda run: run.dagster_run.tags.get(SCHEMA_TAG) == found, runs))
    failed = list(takewhile(_has_failed, same))
    if len(failed) < len(same) or _seconds_to_wait(failed) > 0:
        return None
    # Dagster never runs a key again, so the key names the refresh before: a schema may come back.
    after = runs[0].dagster_run.run_id if runs else "none"
    key = f"{found} after {after}"
    return dg.RunRequest(run_key=key, job_name=job_name, tags={SCHEMA_TAG: found})


def _has_failed(run: dg.RunRecord) -> bool:
    return run.dagster_run.status is dg.DagsterRunStatus.FAILURE


def _seconds_to_wait(failed: list[dg.RunRecord]) -> float:
    """How long the next run waits after those that failed, the newest first."""
    if not failed:
        return 0.0
    wait: float = min(FIRST_WAIT * 4 ** (len(failed) - 1), _LONGEST_WAIT)
    return failed[0].update_timestamp.timestamp() + wait - time.time()


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
                request = refresh_request(instance_of(context), graph, None, job.name)
        except GraphNotFound:
            return dg.SkipReason(f"there is no graph at {config.uri} yet")
        return request or dg.SkipReason("a refresh of the definitions was requested")

    return first_schema
