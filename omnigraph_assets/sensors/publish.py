"""Publishes loads that were staged and left: by a crash, or because they had to wait.

And reports those that were published by a run that died before it could.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import dagster as dg

from omnigraph_assets.assets.load import (
    archive_published,
    check_specs,
    passed_checks,
    publish_guarded,
    table_outputs,
)
from omnigraph_assets.assets.tables import table_specs
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import PARTITION, busy_branches, count_runs, instance_of
from omnigraph_assets.loads import guard
from omnigraph_assets.loads.run_records import (
    Published,
    decision_of,
    publish_load,
    published_loads,
    staged_runs,
)
from omnigraph_assets.metadata import failures
from omnigraph_assets.names import Names
from omnigraph_assets.orphaned_runs import end_dead_runs
from omnigraph_assets.resources.graph import open_graph
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_assets.sensors.backoff import seconds_to_wait
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import NotFoundError

PUBLISH_TAG: Final = "omnigraph/publish"
_INTERVAL: Final = 14
"""Seconds; every third loop of the daemon evaluates the sensor."""
_LOOK_AGAIN_US: Final = 300_000_000
"""After so long the graph is looked at though no run has moved."""
_GRACE_US: Final = 30_000_000
"""How long after a publish its own run, or the one that repeats it, may still report it."""
_LOOKED_BACK_US: Final = 3_600_000_000
"""How far back the first look goes."""
_REPORTED: Final = 100
"""Materialisations of a branch that are looked through for a publish."""


class PublishConfig(dg.Config):
    """Which load to publish, by the id of its run in the run registry."""

    run_id: str


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Up to when publishes are reported, and what the last look at the graph has seen."""

    since: int = 0
    looked_at: int = 0
    moved: float = 0.0
    """When a run had moved last."""
    is_open: bool = True
    """Whether something was left to do."""


def materialisations(
    graph: Omnigraph, config: GraphConfig, published: Published, *, has_previews: bool = True
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
        for output, metadata in table_outputs(graph, config, published, has_previews=has_previews)
    ]


def build_publish_job(target: GraphConfig, state: AcceptedState) -> dg.JobDefinition:
    """Publishes one staged load; asked twice it publishes once."""
    names = Names(target.name)
    checks = check_specs(names, table_specs(target, state))

    @dg.op(
        name=names.named("publish"),
        retry_policy=dg.RetryPolicy(max_retries=2, delay=1),
        required_resource_keys=names.resources,
    )
    def publish(context: dg.OpExecutionContext, config: PublishConfig) -> Iterator[Any]:
        with failures(), open_graph(context, target) as graph:
            published = publish_guarded(graph, target, config.run_id, context.log.warning)
            if published is not None:
                yield from materialisations(graph, target, published)
                archive_published(graph, target, state, config.run_id, context.log.warning)
                yield from passed_checks(context.instance, checks, published)
        yield dg.Output(None)

    @dg.job(
        name=names.named("publish_job"), description="Publish a load that is staged and was left."
    )
    def publish_job() -> None:
        publish()

    return publish_job


def build_publish_guard(config: GraphConfig, state: AcceptedState, job: Any) -> dg.SensorDefinition:
    """The sensor that looks for loads that were left."""
    names = Names(config.name)
    checks = check_specs(names, table_specs(config, state))

    @dg.sensor(
        name=names.named("publish_guard"),
        job=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Publishes loads that are staged and that no run works on, as the guard "
        "decides; reports publishes whose run died, and ends runs that died unseen.",
    )
    def publish_guard(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor, now = _read_cursor(context.cursor), time.time_ns() // 1000
        ended = end_dead_runs(context)
        moved = _last_moved(instance_of(context))
        is_due = cursor.is_open or moved != cursor.moved or now - cursor.looked_at > _LOOK_AGAIN_US
        if not is_due and not ended:
            return dg.SensorResult(skip_reason="no run has moved", cursor=context.cursor)
        busy = busy_branches(instance_of(context), config.name)
        requests, reasons = [], [f"run {run_id} was dead" for run_id in ended]
        with config.open() as graph:
            instance = instance_of(context)
            since, is_open = _report_unreported(
                instance, graph, config, checks, frozenset(busy), cursor
            )
            for run in staged_runs(graph):
                is_open = True
                decision = decision_of(graph, run.run_id)
                tries = count_runs(instance_of(context), PUBLISH_TAG, run.run_id)
                if run.target_branch in busy:
                    reasons.append(f"{run.run_id}: a run works on `{run.target_branch}`")
                elif decision.verdict is guard.Verdict.WAIT:
                    reasons.append(f"{run.run_id} waits: {decision.reason}")
                elif (seconds := _pause(context, run.run_id, tries)) > 0:
                    reasons.append(
                        f"{run.run_id} failed {tries} times: look at its runs; "
                        f"it is tried again in {seconds / 60:.0f} min"
                    )
                else:
                    busy.add(run.target_branch)
                    requests.append(_request(names, run.run_id, run.target_branch, tries))
        seen = _Cursor(since, now, moved, is_open or bool(busy))
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(reasons) or "no load was left",
            cursor=json.dumps(asdict(seen)),
        )

    return publish_guard


def _pause(context: dg.SensorEvaluationContext, run_id: str, tries: int) -> float:
    return seconds_to_wait(instance_of(context), PUBLISH_TAG, run_id, tries)


def _read_cursor(text: str | None) -> _Cursor:
    """The last look; a cursor of another release counts as none."""
    try:
        return _Cursor(**json.loads(text or "{}"))
    except (ValueError, TypeError):
        return _Cursor()


def _last_moved(instance: dg.DagsterInstance) -> float:
    """When any run was begun, or came into another state, last."""
    newest = instance.get_run_records(limit=1, order_by="update_timestamp", ascending=False)
    return newest[0].update_timestamp.timestamp() if newest else 0.0


def _request(names: Names, run_id: str, branch: str, tries: int) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=f"{run_id}#{tries}",
        run_config={"ops": {names.named("publish"): {"config": {"run_id": run_id}}}},
        tags={PUBLISH_TAG: run_id, PARTITION: branch},
    )


def _report_unreported(
    instance: dg.DagsterInstance,
    graph: Omnigraph,
    config: GraphConfig,
    checks: Mapping[str, dg.AssetCheckSpec],
    busy: frozenset[str],
    cursor: _Cursor,
) -> tuple[int, bool]:
    """Report publishes that no run has reported; up to when all are, and whether some have to
    wait."""
    latest = time.time_ns() // 1000 - _GRACE_US
    since = cursor.since or latest - _LOOKED_BACK_US
    for run in published_loads(graph, since=since):
        if run.updated_at > latest or run.target_branch in busy:
            return since, True  # whoever works on the branch may be about to report
        since = run.updated_at
        reported = _reported_commits(instance, Names(config.name), run.target_branch)
        if run.published_snapshot_id not in reported:
            with contextlib.suppress(NotFoundError):  # cleanup was faster
                _report(instance, graph, config, checks, publish_load(graph, config, run.run_id))
    return since, False


def _report(
    instance: dg.DagsterInstance,
    graph: Omnigraph,
    config: GraphConfig,
    checks: Mapping[str, dg.AssetCheckSpec],
    published: Published,
) -> None:
    """Report what a publish made visible, and the checks it has passed.

    A check names the materialisation that it is of, so this is not left to the daemon, which
    reports the events of a tick when the tick is over.
    """
    manifest = Names(config.name).manifest
    made = materialisations(graph, config, published, has_previews=False)  # a tick has 60 s
    # The manifest comes last: by it a publish counts as reported.
    for is_manifest in (False, True):
        for event in made:
            if (event.asset_key == manifest) is is_manifest:
                instance.report_runless_asset_event(event)
        for check in passed_checks(instance, checks, published):
            if (check.asset_key == manifest) is is_manifest:
                instance.report_runless_asset_event(check)


def _reported_commits(instance: dg.DagsterInstance, names: Names, branch: str) -> frozenset[str]:
    """The newest commits that a branch was reported to be made of."""
    wanted = dg.AssetRecordsFilter(names.manifest, asset_partitions=[branch])
    events = instance.fetch_materializations(wanted, limit=_REPORTED).records
    made = [event.asset_materialization for event in events]
    return frozenset(str(one.metadata["commit_id"].value) for one in made if one is not None)
