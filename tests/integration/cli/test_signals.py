"""Ctrl-C ends a wait, whenever it comes and whichever thread is given it."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from omnigraph_core.cli.signals import make_interrupts_certain
from tests.support.processes import spawn
from tests.support.waiting import wait_until


def test_a_signal_that_another_thread_is_given_ends_the_wait() -> None:
    """As one that comes in the moment in which the wait begins: noted, and the wait goes on."""
    with spawn(f"{__name__}:wait_for_ever") as worker:
        assert worker.wait().result() == ["interrupted", "interrupted"]


def test_who_does_not_want_to_be_interrupted_is_not() -> None:
    with spawn(f"{__name__}:ignore") as worker:
        assert worker.wait().result() == "went on"


def wait_for_ever() -> list[str]:
    make_interrupts_certain()
    never, _ = os.pipe()
    seen = []
    for _ in range(2):
        has_started = threading.Event()
        threading.Thread(target=_interrupt_elsewhere, args=(has_started,)).start()
        try:
            has_started.set()
            os.read(never, 1)
        except KeyboardInterrupt:
            seen.append("interrupted")
    return seen


def ignore() -> str:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_interrupts_certain()
    os.kill(os.getpid(), signal.SIGINT)
    return "went on"


def _interrupt_elsewhere(has_started: threading.Event) -> None:
    has_started.wait()  # else the main thread may be waiting for this one to start
    wait_until(_is_waiting, "the main thread to wait", interval=0.001)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def _is_waiting() -> bool:
    """Whether the main thread sleeps."""
    pid = os.getpid()
    return " S " in Path(f"/proc/{pid}/task/{pid}/stat").read_text()
