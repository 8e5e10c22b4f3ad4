"""Deletes old runs of a graph from Dagster, and keeps what the pages of assets show.

Deleting a run deletes its materialisations. A run that made the latest materialisation of an asset
partition therefore stays, however old it is.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import is_run_of
from omnigraph_assets.names import Names

_FINISHED: Final = (
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
_PAGE: Final = 200
"""Runs, and materialisations, that one question to the instance returns."""
MOST: Final = 5_000
"""Runs that one run of the job deletes."""


def build_retention_job(config: GraphConfig, jobs: Collection[str]) -> dg.JobDefinition:
    """The job that deletes finished runs older than `keep_runs_days`.

    Args:
        jobs: the names of the graph's other jobs.
    """
    names = Names(config.name)
    name = names.named("retention_job")

    @dg.op(name=names.named("retention"))
    def retention(context: dg.OpExecutionContext) -> None:
        before = datetime.now(UTC) - timedelta(days=config.keep_runs_days)
        deleted, kept = delete_old_runs(context.instance, config.name, {name, *jobs}, before)
        context.log.info("%s runs older than %s days deleted", deleted, config.keep_runs_days)
        context.add_output_metadata({"runs_deleted": deleted, "runs_kept": kept})

    @dg.job(
        name=name,
        description=f"Delete finished runs that are older than {config.keep_runs_days} days.",
    )
    def retention_job() -> None:
        retention()

    return retention_job


def delete_old_runs(
    instance: dg.DagsterInstance, graph: str, jobs: Collection[str], before: datetime
) -> tuple[int, int]:
    """Delete finished runs of a graph that were created before a moment, the oldest first.

    Returns:
        How many were deleted, and how many stay because an asset partition shows them.
    """
    shown: set[str] | None = None
    deleted: list[str] = []
    kept = 0
    for run in _iter_finished(instance, before):
        if len(deleted) == MOST:
            break
        if not is_run_of(run, graph, jobs):
            continue
        if shown is None:
            shown = _shown_runs(instance, graph)
        if run.run_id in shown:
            kept += 1
        else:
            deleted.append(run.run_id)
    for run_id in deleted:
        instance.delete_run(run_id)
    return len(deleted), kept


def _iter_finished(instance: dg.DagsterInstance, before: datetime) -> Iterator[dg.DagsterRun]:
    wanted = dg.RunsFilter(statuses=list(_FINISHED), created_before=before)
    cursor = None
    while True:
        records = instance.get_run_records(wanted, limit=_PAGE, cursor=cursor, ascending=True)
        yield from (record.dagster_run for record in records)
        if len(records) < _PAGE:
            return
        cursor = records[-1].dagster_run.run_id


def _shown_runs(instance: dg.DagsterInstance, graph: str) -> set[str]:
    """The runs that made the latest materialisation of an asset on a branch that is there."""
    latest = dg.DagsterEventType.ASSET_MATERIALIZATION
    branches = set(instance.get_dynamic_partitions(Names(graph).branches.name or ""))
    storage = instance.event_log_storage
    runs: set[str] = set()
    for key in instance.get_asset_keys(prefix=[graph]):
        by_branch = storage.get_latest_storage_id_by_partition(key, latest, branches)
        ids = sorted(by_branch.values())
        for start in range(0, len(ids), _PAGE):
            wanted = dg.AssetRecordsFilter(key, storage_ids=ids[start : start + _PAGE])
            found = instance.fetch_materializations(wanted, limit=_PAGE).records
            runs |= {record.run_id for record in found}
        newest = instance.get_latest_materialization_event(key)
        if newest is not None:
            runs.add(newest.run_id)
    return runs
