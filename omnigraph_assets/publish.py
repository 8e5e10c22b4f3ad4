"""Publishes loads that were staged and left: by a crash, or because they had to wait.

And tells of those that were published by a run that died before it could.
"""

import contextlib
import time
from typing import Any, Final

import dagster as dg

from omnigraph_assets import guard
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.dead_runs import end_dead_runs
from omnigraph_assets.instance import PARTITION, busy_branches, count_runs
from omnigraph_assets.load import publish_guarded, told_tables
from omnigraph_assets.loads import Published, publish_load, published_loads, ruling_of, staged_runs
from omnigraph_assets.names import Names
from omnigraph_assets.told import failures
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import NotFoundError

PUBLISH_TAG: Final = "omnigraph/publish"
ATTEMPTS: Final = 5
_GRACE_US: Final = 30_000_000
"""How long after a publish its own run, or the one that repeats it, may still tell of it."""
_LOOKED_BACK_US: Final = 3_600_000_000
"""How far back the first look goes."""
_TOLD: Final = 100
"""Materialisations of a branch that are looked through for a publish."""


class PublishConfig(dg.Config):
    """Which load to publish, by the id of its run in the run registry."""

    run_id: str


def materialisations(
    graph: Omnigraph, config: GraphConfig, published: Published
) -> list[dg.AssetMaterialization]:
    """What a publish has made visible, for those who report it from outside of the load."""
    names = Names(config.name)
    keys = {table.table_key.replace(":", "_"): table.table_key for table in published.tables}
    return [
        dg.AssetMaterialization(
            names.manifest if output == "manifest" else names.table(keys[output]),
            partition=published.branch,
            metadata=metadata,
        )
        for output, metadata in told_tables(graph, config, published)
    ]


def build_publish_job(target: GraphConfig) -> dg.JobDefinition:
    """Publishes one staged load; asked twice it publishes once."""
    names = Names(target.name)

    @dg.op(name=names.named("publish"), retry_policy=dg.RetryPolicy(max_retries=2, delay=1))
    def publish(context: dg.OpExecutionContext, config: PublishConfig) -> None:
        with failures(), target.open() as graph:
            published = publish_guarded(graph, config.run_id, context.log.warning)
            if published is not None:
                for event in materialisations(graph, target, published):
                    context.log_event(event)

    @dg.job(
        name=names.named("publish_job"), description="Publish a load that is staged and was left."
    )
    def publish_job() -> None:
        publish()

    return publish_job


def build_publish_guard(config: GraphConfig, job: Any) -> dg.SensorDefinition:
    """The sensor that looks for loads that were left."""
    names = Names(config.name)

    @dg.sensor(
        name=names.named("publish_guard"),
        job=job,
        minimum_interval_seconds=10,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Publishes loads that are staged and that no run works on, as the guard rules; "
        "tells of publishes whose run died, and ends runs that died unseen.",
    )
    def publish_guard(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        ended = end_dead_runs(context)
        busy = busy_branches(context.instance)
        requests, reasons = [], [f"run {run_id} was dead" for run_id in ended]
        with config.open() as graph:
            events, cursor = _untold(context, graph, config, frozenset(busy))
            for run in staged_runs(graph):
                ruling = ruling_of(graph, run.run_id)
                tries = count_runs(context.instance, PUBLISH_TAG, run.run_id)
                if run.target_branch in busy:
                    reasons.append(f"{run.run_id}: a run works on `{run.target_branch}`")
                elif ruling.verdict is guard.Verdict.WAIT:
                    reasons.append(f"{run.run_id} waits: {ruling.reason}")
                elif tries >= ATTEMPTS:
                    reasons.append(f"{run.run_id} failed {tries} times: look at its runs")
                else:
                    busy.add(run.target_branch)
                    requests.append(_request(names, run.run_id, run.target_branch, tries))
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(reasons) or "no load was left",
            cursor=str(cursor),
            asset_events=events,
        )

    return publish_guard


def _request(names: Names, run_id: str, branch: str, tries: int) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=f"{run_id}#{tries}",
        run_config={"ops": {names.named("publish"): {"config": {"run_id": run_id}}}},
        tags={PUBLISH_TAG: run_id, PARTITION: branch},
    )


def _untold(
    context: dg.SensorEvaluationContext, graph: Omnigraph, config: GraphConfig, busy: frozenset[str]
) -> tuple[list[dg.AssetMaterialization], int]:
    """What was published and never told of, and up to when all is told: the next cursor."""
    latest = time.time_ns() // 1000 - _GRACE_US
    since = int(context.cursor) if context.cursor else latest - _LOOKED_BACK_US
    events: list[dg.AssetMaterialization] = []
    for run in published_loads(graph, since=since):
        if run.updated_at > latest or run.target_branch in busy:
            break  # whoever works on the branch may be about to tell
        since = run.updated_at
        told = _told_commits(context.instance, Names(config.name), run.target_branch)
        if run.published_snapshot_id not in told:
            with contextlib.suppress(NotFoundError):  # cleanup was faster
                events += materialisations(graph, config, publish_load(graph, run.run_id))
    return events, since


def _told_commits(instance: dg.DagsterInstance, names: Names, branch: str) -> frozenset[str]:
    """The newest commits that a branch was shown to be made of."""
    wanted = dg.AssetRecordsFilter(names.manifest, asset_partitions=[branch])
    events = instance.fetch_materializations(wanted, limit=_TOLD).records
    made = [event.asset_materialization for event in events]
    return frozenset(str(one.metadata["commit_id"].value) for one in made if one is not None)
