"""How long a run takes from its launch to its first step: forked, and spawned by the code server.

Both kinds of runs are launched in turns, over one code server with the definitions of one graph.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import dagster as dg
from dagster._core.workspace.load_target import GrpcServerTarget, ModuleTarget

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.launched_runs import LAUNCHER, LOCATION, LaunchedRuns

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parent.parent.parent
NAME: Final = "bench"
TIMES: Final = 5
_DEFAULT: Final = {"module": "dagster", "class": "DefaultRunLauncher"}
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the launch to the first step, and those of a processor the run has used."""

    wall: float
    cpu: float


def report_run_start(schema: str) -> None:
    """Launch loads without files and print what their start takes; the first one is left out."""
    with tempfile.TemporaryDirectory() as directory, _launchers(Path(directory), schema) as both:
        forked, spawned = [], []
        for number in range(TIMES + 1):
            found = [_start(runs) for runs in both]
            if number:  # the fork server starts with the first
                forked.append(found[0])
                spawned.append(found[1])
    ratios = [one.wall / other.wall for one, other in zip(forked, spawned, strict=True)]
    print(
        f"start of a run, forked: {_shown(forked)}; spawned by the code server: {_shown(spawned)}"
    )
    print(f"  {statistics.median(ratios):.2f} x of the time, median of {TIMES} pairs")


@contextlib.contextmanager
def _launchers(root: Path, schema: str) -> Iterator[tuple[LaunchedRuns, LaunchedRuns]]:
    Omnigraph.init(str(root / "graph"), schema)
    os.environ |= {
        "OMNIGRAPH_PLATFORM_NAME": NAME,
        "OMNIGRAPH_PLATFORM_GRAPH": str(root / "graph"),
        "OMNIGRAPH_PLATFORM_DROPS": str(root / "drops"),
    }
    state = {
        "module": "dagster._core.storage.defs_state.blob_storage_state_storage",
        "class": "UPathDefsStateStorage",
        "config": {"base_path": str(root / "state")},
    }
    target = ModuleTarget("omnigraph_assets.definitions", None, str(ROOT), LOCATION)
    with contextlib.ExitStack() as stack:
        instances = []
        for launcher in (LAUNCHER, _DEFAULT):
            settings = {"run_launcher": launcher, "defs_state_storage": state}
            instance = stack.enter_context(dg.instance_for_test(settings))
            instance.add_dynamic_partitions(f"{NAME}_branches", ["main"])
            instances.append(instance)
        first = stack.enter_context(LaunchedRuns(instances[0], target))
        same = GrpcServerTarget("localhost", None, first.code_server, LOCATION)
        yield first, stack.enter_context(LaunchedRuns(instances[1], same))


def _start(runs: LaunchedRuns) -> Start:
    run_id = runs.create(f"{NAME}_load_job", tags={"dagster/partition": "main"})
    begun, cpu = time.time(), 0.0
    runs.start(run_id)
    pid = None
    while not (steps := runs.instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_START)):
        assert not runs.run(run_id).is_finished, runs.said(run_id)
        pid = pid or _pid(runs, run_id)
        cpu = _cpu(pid) or cpu
        time.sleep(0.01)
    cpu = _cpu(pid or _pid(runs, run_id)) or cpu
    assert runs.end(run_id) == "SUCCESS", runs.said(run_id)
    return Start(steps[0].timestamp - begun, cpu)


def _pid(runs: LaunchedRuns, run_id: str) -> int | None:
    """The process of a run, once it has reported itself."""
    for entry in runs.instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        data = entry.dagster_event.engine_event_data if entry.dagster_event else None
        if data is not None and "pid" in data.metadata:
            return int(str(data.metadata["pid"].value))
    return None


def _cpu(pid: int | None) -> float:
    """What a process has used of a processor; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _shown(starts: list[Start]) -> str:
    wall = statistics.median(start.wall for start in starts)
    cpu = statistics.median(start.cpu for start in starts)
    return f"{wall:.2f} s, {cpu:.2f} CPU-s"
