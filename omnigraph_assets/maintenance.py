"""Upkeep of a branch: fewer and fuller files, and old versions removed if that is confirmed."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.names import Names
from omnigraph_assets.told import failures, spark_metadata


class CleanupConfig(dg.Config):
    """Unless `confirm` is set, cleanup only tells what it would remove."""

    confirm: bool = False


def build_maintenance(target: GraphConfig) -> dg.AssetsDefinition:
    """The assets `compaction` and `cleanup`, together or alone."""
    names = Names(target.name)
    about = {
        "compaction": "Tables in fewer, fuller files with complete indexes: one publish at most.",
        "cleanup": "Versions that are no longer kept, and files that nothing needs.",
    }
    specs = {
        what: dg.AssetSpec(
            names.key(what),
            deps=[names.manifest],
            description=text,
            group_name=names.group("maintenance"),
            owners=list(target.owners),
            kinds={"lance"},
            partitions_def=names.branches,
        )
        for what, text in about.items()
    }

    @dg.multi_asset(
        name=names.named("maintenance"),
        specs=list(specs.values()),
        can_subset=True,
        partitions_def=names.branches,
        pool="maintenance",
    )
    def maintenance(
        context: dg.AssetExecutionContext, config: CleanupConfig
    ) -> Iterator[dg.MaterializeResult[Any]]:
        branch, chosen = context.partition_key, context.selected_asset_keys
        with failures(), target.open() as graph:
            if specs["compaction"].key in chosen:
                tables = graph.optimize(branch=branch, engine=target.engine)
                yield dg.MaterializeResult(
                    specs["compaction"].key,
                    metadata={
                        "tables_rewritten": sum(table.committed for table in tables),
                        "fragments_removed": sum(table.fragments_removed for table in tables),
                        "fragments_added": sum(table.fragments_added for table in tables),
                        "tables": dg.MetadataValue.json([table.to_json() for table in tables]),
                        **spark_metadata(tables.spark),
                    },
                )
            if specs["cleanup"].key in chosen:
                report = graph.cleanup(
                    keep=target.keep_versions,
                    branches=[branch],
                    is_preview=not config.confirm,
                    engine=target.engine,
                )
                yield dg.MaterializeResult(
                    specs["cleanup"].key,
                    metadata={
                        "is_preview": report.is_preview,
                        "bytes_removed": report.bytes_removed,
                        "versions_removed": sum(b.old_versions_removed for b in report.branches),
                        **spark_metadata(report.spark),
                    },
                )

    return maintenance


def build_schedules(target: GraphConfig) -> tuple[list[Any], list[dg.ScheduleDefinition]]:
    """Jobs and schedules: compaction every night, cleanup every week, a run for each branch."""
    names = Names(target.name)
    plans = {"compaction": "0 2 * * *", "cleanup": "0 4 * * 0"}
    jobs: list[Any] = []
    schedules: list[dg.ScheduleDefinition] = []
    for what, cron in plans.items():
        job = dg.define_asset_job(
            names.named(f"{what}_job"), selection=dg.AssetSelection.assets(names.key(what))
        )
        jobs.append(job)
        schedules.append(_schedule(target, names, what, cron, job))
    return jobs, schedules


def _schedule(
    target: GraphConfig, names: Names, what: str, cron: str, job: Any
) -> dg.ScheduleDefinition:
    config = {"confirm": what == "cleanup" and target.scheduled_cleanup}

    @dg.schedule(
        name=names.named(f"{what}_schedule"),
        cron_schedule=cron,
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
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
