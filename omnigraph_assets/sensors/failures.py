"""Tells others of failed runs: one JSON message to an address of theirs."""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import is_run_of
from omnigraph_assets.names import Names

_SECONDS = 10.0


def build_failure_hook(config: GraphConfig, jobs: Sequence[Any]) -> dg.SensorDefinition:
    """The sensor that posts each failed run of a graph to its `failure_webhook`."""
    address = config.failure_webhook
    assert address is not None
    names = {job.name for job in jobs}

    @dg.run_failure_sensor(
        name=Names(config.name).named("failure_hook"),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Posts failed runs to the failure webhook.",
    )
    def failure_hook(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        if not is_run_of(run, config.name, names):
            return
        message = {
            "graph": config.name,
            "job": run.job_name,
            "run_id": run.run_id,
            "branch": run.tags.get("dagster/partition"),
            "problem": context.failure_event.message,
        }
        post(address, message)

    return failure_hook


def post(address: str, message: dict[str, Any]) -> None:
    """
    Raises:
        dg.Failure: nobody has taken the message.
    """
    request = urllib.request.Request(
        address, json.dumps(message).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return
    except (urllib.error.URLError, TimeoutError) as problem:
        raise dg.Failure(f"nobody at {address} took the message: {problem}") from problem
