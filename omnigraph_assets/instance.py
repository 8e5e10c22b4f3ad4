"""What the instance of Dagster knows of the runs of a graph."""

from collections.abc import Container
from functools import lru_cache
from typing import Final

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from dagster._serdes import deserialize_value, serialize_value

PARTITION: Final = "dagster/partition"
LIVE: Final = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


def instance_of(context: dg.SensorEvaluationContext) -> dg.DagsterInstance:
    """The instance of a tick, opened once in a process.

    A context opens its own for each tick, and reads all of Dagster's migrations to do so: that was
    half of what idle sensors cost.
    """
    ref = context.instance_ref
    return context.instance if ref is None else _opened(serialize_value(ref))


@lru_cache(maxsize=1)
def _opened(ref: str) -> dg.DagsterInstance:
    return dg.DagsterInstance.from_ref(deserialize_value(ref, InstanceRef))


def busy_branches(instance: dg.DagsterInstance, graph: str) -> set[str]:
    """Branches of a graph that some run works on, or will."""
    runs = instance.get_runs(dg.RunsFilter(statuses=list(LIVE)))
    return {run.tags[PARTITION] for run in runs if PARTITION in run.tags and _may_be_of(run, graph)}


def _may_be_of(run: dg.DagsterRun, graph: str) -> bool:
    """Whether a run is not known to be another graph's: names of jobs begin with their graph's."""
    if keys := _selected_keys(run):
        return any(key.path[0] == graph for key in keys)
    return run.job_name.startswith((f"{graph}_", "__"))


def _selected_keys(run: dg.DagsterRun) -> list[dg.AssetKey]:
    chosen = run.asset_selection or ()
    checked = run.asset_check_selection or ()
    return [*chosen, *(check.asset_key for check in checked)]


def count_runs(instance: dg.DagsterInstance, tag: str, value: str) -> int:
    """Runs that bear a tag, whatever became of them."""
    return instance.get_runs_count(dg.RunsFilter(tags={tag: value}))


def last_run(instance: dg.DagsterInstance, tag: str, value: str) -> dg.RunRecord | None:
    """The newest run that bears a tag."""
    found = instance.get_run_records(dg.RunsFilter(tags={tag: value}), limit=1)
    return found[0] if found else None


def runs_of_job(instance: dg.DagsterInstance, job: str, *, limit: int) -> list[dg.RunRecord]:
    """The newest runs of a job, the newest first."""
    return list(instance.get_run_records(dg.RunsFilter(job_name=job), limit=limit))


def is_run_of(run: dg.DagsterRun, graph: str, jobs: Container[str]) -> bool:
    """Whether a run belongs to a graph: by one of its jobs, or by assets selected by hand."""
    return run.job_name in jobs or any(key.path[0] == graph for key in _selected_keys(run))
