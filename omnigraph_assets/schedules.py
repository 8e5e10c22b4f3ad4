"""Schedules: compaction and retention of runs every day; cleanup and checks every week."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from omnigraph_assets.assets.maintenance import CLEANUP, COMPACTION
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import PARTITION
from omnigraph_assets.names import Names

_RUNNING = dg.DefaultScheduleStatus.RUNNING


def build_schedules(
    target: GraphConfig, maintenance: Mapping[str, Any], checks: Any, retention: dg.JobDefinition
) -> list[dg.ScheduleDefinition]:
    """The schedules of a graph.

    Args:
        maintenance: the jobs of compaction and cleanup, by the name of their asset.
    """
    names = Names(target.name)
    crons = {COMPACTION: "0 2 * * *", CLEANUP: "0 4 * * 0"}
    schedules = [
        _each_branch(target, what, cron, maintenance[what]) for what, cron in crons.items()
    ]
    daily = dg.ScheduleDefinition(
        name=names.named("retention_schedule"),
        cron_schedule="0 6 * * *",
        job=retention,
        default_status=_RUNNING,
    )
    return [*schedules, _checks_schedule(target, checks), daily]


def _each_branch(target: GraphConfig, what: str, cron: str, job: Any) -> dg.ScheduleDefinition:
    """A run for each branch; as many of them at a time as `maintenance_limit` allows."""
    names = Names(target.name)
    config = {"confirm": what == CLEANUP and target.scheduled_cleanup}

    @dg.schedule(
        name=names.named(f"{what}_schedule"),
        cron_schedule=cron,
        job=job,
        default_status=_RUNNING,
    )
    def each_branch(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest]:
        day = context.scheduled_execution_time.date().isoformat()
        with target.open() as graph:
            branches = graph.branch_list()
        return [
            dg.RunRequest(
                run_key=f"{what}:{branch}:{day}",
                partition_key=branch,
                run_config={"ops": {names.named("maintenance"): {"config": config}}},
            )
            for branch in branches
        ]

    return each_branch


def _checks_schedule(target: GraphConfig, job: Any) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=Names(target.name).named("checks_schedule"),
        cron_schedule="0 5 * * 0",
        job=job,
        default_status=_RUNNING,
    )
    def checks_of_each_branch(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest]:
        day = context.scheduled_execution_time.date().isoformat()
        with target.open() as graph:
            branches = graph.branch_list()
        return [
            dg.RunRequest(run_key=f"checks:{branch}:{day}", tags={PARTITION: branch})
            for branch in branches
        ]

    return checks_of_each_branch
