"""Deletes old runs of a graph from Dagster, and keeps what the pages of assets show.

Deleting a run deletes its materialisations. A run that made the latest materialisation of an asset
partition therefore stays, however old it is.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage

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
SECONDS: Final = 3600.0
"""After so long a run of the job ends, though older runs are left; the next one goes on."""


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
    ends_at = time.monotonic() + SECONDS
    shown: set[str] | None = None
    deleted = kept = 0
    for page in _iter_finished(instance, before):
        for run in page:
            if not is_run_of(run, graph, jobs):
                continue
            if shown is None:
                shown = _shown_runs(instance, graph)
            if run.run_id in shown:
                kept += 1
            else:
                _delete_run(instance, run.run_id)
                deleted += 1
            if time.monotonic() >= ends_at:
                return deleted, kept
    return deleted, kept


def _delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run with its events, and the file that Dagster's SQLite storage keeps for them."""
    instance.delete_run(run_id)
    if isinstance(storage := instance.event_log_storage, SqliteEventLogStorage):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{storage.path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)


def _iter_finished(
    instance: dg.DagsterInstance, before: datetime
) -> Iterator[Sequence[dg.DagsterRun]]:
    """Finished runs in pages. Who takes a page may delete its runs.

    The next page is read before: one that follows a deleted run would be empty.
    """
    wanted = dg.RunsFilter(statuses=list(_FINISHED), created_before=before)
    page: Sequence[dg.DagsterRun] = instance.get_runs(wanted, limit=_PAGE, ascending=True)
    while page:
        last = page[-1].run_id
        following = instance.get_runs(wanted, cursor=last, limit=_PAGE, ascending=True)
        yield page
        page = following


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
