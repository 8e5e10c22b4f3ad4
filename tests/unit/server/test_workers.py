"""A worker does not outlive the process that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

from omnigraph_core.server.workers import _end_with_parent
from tests.support.processes import say, spawn


def work() -> None:
    """What a worker is, without an app."""
    say(str(os.getpid()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    time.sleep(3_600)


def start_worker() -> None:
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()


def test_a_worker_ends_with_its_parent() -> None:
    with spawn("tests.unit.server.test_workers:start_worker") as parent:
        worker = int(parent.next_line())
        os.kill(parent.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while _is_there(worker):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
