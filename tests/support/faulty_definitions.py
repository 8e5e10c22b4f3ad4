"""The code location as it is shipped, with runs that can be made to fail at a named place.

A run tagged with `FAILPOINTS` arms these points, and one tagged with `ENVIRONMENT` sets variables,
in its own process alone. `KILLED_AFTER` and `HELD_AFTER` name a step after whose work the run is
killed or waits. Runs that repeat it bear its tags too, and do nothing of that.
"""

import contextlib
import json
import os
import signal
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster._core.storage.tags import PARENT_RUN_ID_TAG
from dagster_shared.record import replace

import omnigraph_assets
from omnigraph_core import failpoints
from tests.support.faulty_tags import ENVIRONMENT, FAILPOINTS, HELD_AFTER, KILLED_AFTER
from tests.support.waiting import wait_until

_PATIENCE = 400.0
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)


class _ArmedExecutor(InProcessExecutor):
    """Like the one that is shipped, once what the run asks for is armed."""

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        tags = plan_context.dagster_run.tags
        with contextlib.ExitStack() as armed:
            if PARENT_RUN_ID_TAG not in tags:
                os.environ.update(json.loads(tags.get(ENVIRONMENT, "{}")))
                for name, plan in json.loads(tags.get(FAILPOINTS, "{}")).items():
                    armed.enter_context(failpoints.arm(name, plan))
            for event in super().execute(plan_context, execution_plan):
                if PARENT_RUN_ID_TAG not in tags:
                    _meet(event, tags)
                yield event


def _meet(event: dg.DagsterEvent, tags: Mapping[str, str]) -> None:
    """Die or wait if the run was asked to, at the first output of a step: its work is done."""
    if event.event_type is not dg.DagsterEventType.STEP_OUTPUT or event.step_key is None:
        return
    step = event.step_key.rpartition(".people_")[2].partition("[")[0]
    if tags.get(KILLED_AFTER) == step:
        os.kill(os.getpid(), signal.SIGKILL)
    held, _, directory = tags.get(HELD_AFTER, "").partition(" ")
    if held == step:
        Path(directory, "held").touch()
        wait_until(Path(directory, "released").exists, "its release", seconds=_PATIENCE)


@dg.executor(name="in_process")
def _armed_executor(context: dg.InitExecutorContext) -> _ArmedExecutor:
    return _ArmedExecutor(retries=RetryMode.ENABLED)


@dg.definitions
def defs() -> dg.Definitions:
    shipped = dg.load_from_defs_folder(path_within_project=Path(omnigraph_assets.__file__).parent)
    # Nothing is told here of what is derived from loads: making it would only cost time.
    watching = [one for one in shipped.sensors or () if not one.name.endswith("_automation")]
    return replace(shipped, executor=_armed_executor, sensors=watching)
