"""A worker does not outlive the process that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

from omnigraph_core.server.workers import _end_with_parent
from tests.support.processes import say, spawn
from tests.support.waiting import wait_until


def work() -> None:
    """What a worker is, without an app."""
    say(str(os.getpid()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.pause()


def start_worker() -> None:
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()


def test_a_worker_ends_with_its_parent() -> None:
    with spawn(f"{__name__}:start_worker") as parent:
        worker = int(parent.next_line())
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: not _is_there(worker), "the end of the worker")


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
