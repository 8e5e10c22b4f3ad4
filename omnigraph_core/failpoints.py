"""Named places where a test can make the process fail, so recovery is proven and not hoped for.

A module declares its points at import; `hit` costs one attribute test while nothing is armed.
Points are armed by `arm` in tests of one process and by OMNIGRAPH_FAILPOINTS in child processes.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ConfigError, InvariantBroken, StorageError
from omnigraph_core.settings import FAILPOINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAN: Final = re.compile(r"(?P<action>crash|error|sleep\((?P<ms>\d+)\))(?:\*(?P<times>\d+))?")


class FailAction(StrEnum):
    CRASH = "crash"
    ERROR = "error"
    SLEEP = "sleep"


@dataclass(slots=True)
class _Armed:
    action: FailAction
    milliseconds: int = 0
    remaining: int | None = None


class Failpoint:
    """One declared point. `hit` does nothing unless armed."""

    __slots__ = ("_armed", "about", "name")

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about
        self._armed: _Armed | None = None

    def hit(self) -> None:
        """Fail here if armed: end the process, raise a retryable StorageError, or wait."""
        if self._armed is not None:
            self._fail(self._armed)

    def _fail(self, armed: _Armed) -> None:
        if armed.remaining is not None:
            if armed.remaining == 0:
                return
            armed.remaining -= 1
        if armed.action is FailAction.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)  # what the kernel or an operator would do
        if armed.action is FailAction.ERROR:
            raise StorageError(f"failpoint {self.name}", retryable=True)
        time.sleep(armed.milliseconds / 1000)


_declared: Final[dict[str, Failpoint]] = {}


def declare(name: str, about: str) -> Failpoint:
    """Register a point under a dotted name; arms it at once if the environment says so."""
    if name in _declared:
        raise InvariantBroken(f"failpoint {name} is declared once")
    point = Failpoint(name, about)
    _declared[name] = point
    if plan := FAILPOINTS.read().get(name):
        point._armed = _parse_plan(plan)
    return point


def declared() -> tuple[Failpoint, ...]:
    """Every point declared by the modules imported so far, by name."""
    return tuple(_declared[name] for name in sorted(_declared))


@contextlib.contextmanager
def arm(name: str, plan: str) -> Iterator[None]:
    """Arm a declared point for a block: `crash`, `error` or `sleep(ms)`, with `*times` if wanted.

    Raises:
        ConfigError: unknown point or malformed plan.
    """
    point = _declared.get(name)
    if point is None:
        raise ConfigError(
            f"no failpoint `{name}`", hint=f"declared: {', '.join(sorted(_declared))}"
        )
    point._armed = _parse_plan(plan)
    try:
        yield
    finally:
        point._armed = None


def _parse_plan(plan: str) -> _Armed:
    found = _PLAN.fullmatch(plan)
    if not found:
        message = f"malformed plan {plan!r} for a failpoint"
        raise ConfigError(message, hint=f"{FAILPOINTS.name}: {FAILPOINTS.about}")
    action = FailAction(found["action"].partition("(")[0])
    times = int(found["times"]) if found["times"] else None
    return _Armed(action, int(found["ms"] or 0), times)
