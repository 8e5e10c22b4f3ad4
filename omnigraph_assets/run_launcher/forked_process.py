"""The process that carries out a forked run, as a tag of the run names it."""

import json
import socket
import time
from typing import Any, Final

import dagster as dg

PROCESS_TAG: Final = ".dagster/forked_process"
NO_PROCESS: Final = "{}"
"""The value of the tag for a run that is not carried out by a forked process after all."""


def process_tag(run: dg.DagsterRun, pid: int) -> str:
    """The value of the tag for a process of this machine."""
    process = {"run_id": run.run_id, "pid": pid, "since": time.time(), "host": socket.gethostname()}
    return json.dumps(process)


def forked_process(run: dg.DagsterRun) -> dict[str, Any] | None:
    """The process of a run; None if it is not one of this machine.

    Runs that repeat another one inherit the tag of that.
    """
    found = json.loads(run.tags.get(PROCESS_TAG, NO_PROCESS))
    is_its_own = found.get("run_id") == run.run_id and found.get("host") == socket.gethostname()
    return found if is_its_own else None


def forked_pid(run: dg.DagsterRun) -> int | None:
    """The number of the process of a run; None if it is not one of this machine."""
    process = forked_process(run)
    return None if process is None else int(process["pid"])
