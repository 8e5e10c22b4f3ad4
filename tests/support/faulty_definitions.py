"""The code location as it is shipped, with runs that can be made to fail at a named place.

A run tagged with `FAILPOINTS` arms these points, and one tagged with `ENVIRONMENT` sets variables,
in its own process alone. Runs that repeat it bear its tags too, and do neither.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster._core.storage.tags import PARENT_RUN_ID_TAG
from dagster_shared.record import replace

import omnigraph_assets
from omnigraph_core import failpoints
from tests.support.faulty_tags import ENVIRONMENT, FAILPOINTS

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
            yield from super().execute(plan_context, execution_plan)


@dg.executor(name="in_process")
def _armed_executor(context: dg.InitExecutorContext) -> _ArmedExecutor:
    return _ArmedExecutor(retries=RetryMode.ENABLED)


@dg.definitions
def defs() -> dg.Definitions:
    shipped = dg.load_from_defs_folder(path_within_project=Path(omnigraph_assets.__file__).parent)
    # Nothing is told here of what is derived from loads: making it would only cost time.
    watching = [one for one in shipped.sensors or () if not one.name.endswith("_automation")]
    return replace(shipped, executor=_armed_executor, sensors=watching)
