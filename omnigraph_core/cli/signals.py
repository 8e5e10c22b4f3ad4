"""Ctrl-C that is never missed.

Python notes a signal and raises KeyboardInterrupt when it is back in Python. A signal that comes
in the moment in which the process begins to wait for something, or that another thread is given, is
noted only: the wait goes on, for a server that does not answer for as long as that takes. So a note
also reaches a thread, which nudges the waiting one until it has seen it.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType

_NUDGE: Final = signal.SIGURG
"""Means nothing to a process that asks for nothing urgent, but ends a wait as any signal does."""
_PATIENCE: Final = tuple(0.1 * 2**n for n in range(10))
"""Seconds before each nudge. Two notes may be seen at once: those for the second one must end."""


def make_interrupts_certain() -> None:
    """See to it that Ctrl-C ends whatever the main thread, which calls this, waits for."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # whoever started the process does not want it to be interrupted
    noted, note = os.pipe()
    os.set_blocking(note, False)  # a signal must not wait for its note to be read
    is_seen = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        is_seen.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(_NUDGE, lambda number, frame: None)
    watch = threading.Thread(
        target=_watch, args=(noted, is_seen, threading.get_ident()), daemon=True, name="interrupts"
    )
    watch.start()
    signal.set_wakeup_fd(note, warn_on_full_buffer=False)


def _watch(noted: int, is_seen: threading.Event, waiting: int) -> None:
    while True:
        if signal.SIGINT not in os.read(noted, 4096):
            continue
        for seconds in _PATIENCE:
            if is_seen.wait(seconds):
                break
            signal.pthread_kill(waiting, _NUDGE)
        is_seen.clear()
