"""Ctrl-C in a process that has made it certain; `tests/integration/cli/test_signals.py` waits."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.cli.signals import make_interrupts_certain

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """As they were. The thread that watches ends with the process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGURG)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_interrupt_is_raised() -> None:
    make_interrupts_certain()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_handler_of_others_is_left_alone() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_interrupts_certain()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
