"""What the instance of Dagster knows of the runs of a graph."""

from typing import Final

import dagster as dg

PARTITION: Final = "dagster/partition"
LIVE: Final = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


def busy_branches(instance: dg.DagsterInstance) -> set[str]:
    """Branches that some run works on, or will."""
    runs = instance.get_runs(dg.RunsFilter(statuses=list(LIVE)))
    return {run.tags[PARTITION] for run in runs if PARTITION in run.tags}


def count_runs(instance: dg.DagsterInstance, tag: str, value: str) -> int:
    """Runs that bear a tag, whatever became of them."""
    return instance.get_runs_count(dg.RunsFilter(tags={tag: value}))
