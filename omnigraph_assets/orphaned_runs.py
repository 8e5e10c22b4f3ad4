"""Runs whose process died together with the code server that had started it.

A code server notices when one of its runs dies. When it dies itself, nobody does: Dagster shows the
run as started for hours, and its branch waits. Looked at from the next code server, which is where
the processes of runs are, it is plain.
"""

import os
import time
from pathlib import Path
from typing import Final

import dagster as dg

from omnigraph_assets.instance import instance_of

_LAUNCHERS: Final = ("DefaultRunLauncher", "ForkingRunLauncher")
"""Start runs as processes of the code server, or beside it. Others, as that of Kubernetes, start
them elsewhere, and watch them by themselves."""
_SLACK: Final = 5.0
"""Seconds by which clocks of the kernel and of Dagster may differ."""
_GRACE: Final = 10.0
"""Seconds that whoever has started a process has to report its end: it knows how it came."""
_first_seen_dead: Final[dict[str, float]] = {}
"""When runs were first found without a process, by their ids."""


def end_dead_runs(
    context: dg.SensorEvaluationContext, *, grace_seconds: float = _GRACE
) -> list[str]:
    """Mark runs of this code location as failed whose process is gone for some time; their ids."""
    instance, here = instance_of(context), context.code_location_origin
    ended: list[str] = []
    if here is None or not _starts_processes(instance):
        return ended
    dead: set[str] = set()
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        origin = run.remote_job_origin
        if (
            origin is None
            or origin.repository_origin.code_location_origin != here
            or not _is_dead(instance, run)
        ):
            continue
        dead.add(run.run_id)
        since = _first_seen_dead.setdefault(run.run_id, time.monotonic())
        if time.monotonic() - since < grace_seconds:
            continue
        found = instance.get_run_by_id(run.run_id)  # it may have ended in the moment before
        if found is not None and found.status is dg.DagsterRunStatus.STARTED:
            instance.report_run_failed(found, "Its process is gone, and so is who had started it.")
            ended.append(run.run_id)
    for run_id in _first_seen_dead.keys() - dead:
        del _first_seen_dead[run_id]
    return ended


def _starts_processes(instance: dg.DagsterInstance) -> bool:
    """Whether runs are processes beside this one; the launcher is not made for it, nor imported."""
    launcher = instance.get_ref().run_launcher_data
    return launcher is not None and launcher.class_name in _LAUNCHERS


def _is_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the processes that a run has reported are gone; False if it has reported none."""
    reported: list[tuple[int, float]] = []
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        metadata = entry.dagster_event.engine_event_data.metadata if entry.dagster_event else {}
        if "pid" in metadata:
            reported.append((int(str(metadata["pid"].value)), entry.timestamp))
    return bool(reported) and not any(is_alive(pid, since) for pid, since in reported)


def is_alive(pid: int, since: float) -> bool:
    """Whether a process is there that was there at a time; its number may be another's by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        booted = Path("/proc/stat").read_text().partition("btime ")[2].split()[0]
    except FileNotFoundError:  # no Linux, or it has just ended: the next look tells
        return True
    fields = stat.rpartition(")")[2].split()  # after its name, which may hold anything
    if fields[0] == "Z":  # it has ended, and nobody has asked how
        return False
    ticks = int(fields[19])
    return int(booted) + ticks / os.sysconf("SC_CLK_TCK") <= since + _SLACK
