"""What the outputs of a run have staged, by the materialisations that Dagster has recorded.

A run that is re-executed goes on with what the runs before it have staged: all runs of one root
share a staging. Only recorded outputs count, so a step that failed leaves nothing to publish.
"""

from dataclasses import dataclass
from typing import Final

import dagster as dg

STAGED: Final = "staged"
FRAME: Final = "omnigraph/frame"
STAGING: Final = "omnigraph/staging"
_ROOT: Final = "dagster/root_run_id"


@dataclass(frozen=True, slots=True)
class StagedOutput:
    """The newest output of an asset, or of one partition of it."""

    asset_key: dg.AssetKey
    partition: str | None
    frame: str
    """The name by which the engine knows the rows."""

    @property
    def label(self) -> str:
        key = self.asset_key.to_user_string()
        return key if self.partition is None else f"{key}[{self.partition}]"


def staging_of(run: dg.DagsterRun) -> str:
    """The name of the staging that a run shares with the runs it repeats."""
    return run.root_run_id or run.run_id


def staged_outputs(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[StagedOutput, ...]:
    """All outputs that the runs of one root have staged, the newest of each asset."""
    root = staging_of(run)
    # By their tag, not as Dagster's group of runs: the retention of runs may have deleted the root.
    repeats = instance.get_run_ids(dg.RunsFilter(tags={_ROOT: root}))
    events = [
        event
        for run_id in dict.fromkeys([root, *repeats, run.run_id])
        for event in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    ]
    newest: dict[tuple[dg.AssetKey, str | None], StagedOutput] = {}
    for event in sorted(events, key=lambda one: one.timestamp):
        made = event.asset_materialization
        if made is None or FRAME not in made.metadata:
            continue
        if made.metadata[STAGING].value != root:
            continue
        frame = str(made.metadata[FRAME].value)
        found = StagedOutput(made.asset_key, made.partition, frame)
        newest[found.asset_key, found.partition] = found
    return tuple(newest.values())
