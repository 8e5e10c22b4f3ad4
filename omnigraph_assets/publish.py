"""Publishes loads that were staged and left: by a crash, or because they had to wait."""

from typing import Any, Final

import dagster as dg

from omnigraph_assets import guard
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import PARTITION, busy_branches, count_runs
from omnigraph_assets.load import publish_guarded, told_tables
from omnigraph_assets.loads import Published, ruling_of, staged_runs
from omnigraph_assets.names import Names
from omnigraph_assets.told import failures
from omnigraph_core.engine.omnigraph import Omnigraph

PUBLISH_TAG: Final = "omnigraph/publish"
ATTEMPTS: Final = 5


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
        description="Publishes loads that are staged and that no run works on, as the guard rules.",
    )
    def publish_guard(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        busy = busy_branches(context.instance)
        requests, reasons = [], []
        with config.open() as graph:
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
        )

    return publish_guard


def _request(names: Names, run_id: str, branch: str, tries: int) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=f"{run_id}#{tries}",
        run_config={"ops": {names.named("publish"): {"config": {"run_id": run_id}}}},
        tags={PUBLISH_TAG: run_id, PARTITION: branch},
    )
