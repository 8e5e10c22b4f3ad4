"""Processes that are killed at a point: forked from one that has imported everything already.

Only the parsers have run in the process they are forked from, so each is as good as a fresh one,
and costs a fraction of it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.failpoints import arm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ENOUGH_SECONDS: Final = 600

_processes: Final = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.operations", "tests.support.parsers"])


def crash_at(point: str, function: Callable[..., object], *arguments: Any) -> None:
    """Run a function of a module in a process of its own, which is killed at the point.

    Raises:
        AssertionError: it ended in another way.
    """
    process = _processes.Process(
        target=_run, args=(dict(os.environ), point, function, arguments), daemon=True
    )
    sys.audit("omnigraph.test_process_started")
    process.start()
    process.join(_ENOUGH_SECONDS)
    ended = process.exitcode
    process.kill()
    process.join()
    process.close()
    assert ended == -signal.SIGKILL, f"{function.__name__} ended with {ended}, not at {point}"


def _run(
    environment: Mapping[str, str],
    point: str,
    function: Callable[..., object],
    arguments: tuple[Any, ...],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with arm(point, "crash"):
        function(*arguments)
