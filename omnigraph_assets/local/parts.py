"""Processes that are started, watched and ended for certain.

Each is the leader of a session of its own, so that Ctrl-C does not reach it before its turn and all
it has started can be ended with it. Each holds a lock on a file with its number: whoever finds the
file locked knows that the number is still that of this process and of no other.
"""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from omnigraph_assets.local.places import ROOT, Places

_CERTAIN: Final = 60.0
"""Seconds: nobody survives a kill, but the system takes its time to bury the dead."""
_PATIENCE: Final = 15.0
"""Seconds that a process has to end by itself."""
_BETWEEN_LOOKS: Final = 0.05
_TAIL: Final = 30


class Part:
    """A process that is running, or was."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def code(self) -> int | None:
        """How it ended; None while it lives."""
        return self._process.poll()

    @property
    def tail(self) -> str:
        """The last it said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL:])

    def is_gone(self) -> bool:
        """Whether neither it nor anything it has started is there."""
        self._process.poll()  # one that has ended counts as there until somebody has asked
        return not _is_there(self._process.pid)

    def send(self, number: signal.Signals) -> None:
        _send(self._process.pid, number)


def start_part(
    name: str, command: Sequence[str], places: Places, environment: Mapping[str, str]
) -> Part:
    """Start a process; what it says goes to a log of its name."""
    log = places.logs / f"{name}.log"
    with (places.processes / name).open("w") as held, log.open("wb") as said:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(held.fileno(),),  # the lock is now that of the process
        )
        held.write(str(process.pid))
    return Part(name, process, log)


def stop_parts(parts: Iterable[Part]) -> None:
    """End them together: politely, then for certain. Nothing they have started is left."""
    left = list(parts)
    for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, _CERTAIN)):
        for part in left:
            part.send(number)
        end = time.monotonic() + patience
        while (left := [part for part in left if not part.is_gone()]) and time.monotonic() < end:
            time.sleep(_BETWEEN_LOOKS)


def holder(file: Path) -> int | None:
    """The number of the process that holds a file; None if nobody does."""
    try:
        with file.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        text = file.read_text()
        return int(text) if text.isdecimal() else None
    return None


def left_behind(places: Places) -> dict[str, int]:
    """Processes that live on though the one that had started them is gone."""
    if not places.processes.is_dir():
        return {}
    found = {file.name: holder(file) for file in sorted(places.processes.iterdir())}
    return {name: number for name, number in found.items() if number is not None}


def stop_left_behind(places: Places) -> list[str]:
    """End what an earlier start has left; which it was."""
    left = left_behind(places)
    for number in left.values():
        for kind in (signal.SIGTERM, signal.SIGKILL):
            _send(number, kind)
            end = time.monotonic() + _PATIENCE
            while _is_there(number) and time.monotonic() < end:
                time.sleep(_BETWEEN_LOOKS)
    return list(left)


def _send(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
