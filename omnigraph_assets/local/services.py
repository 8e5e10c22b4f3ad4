"""The processes of the platform: start them, watch them, and end them with all they have started.

Each service leads a session of its own. Ctrl-C in the terminal therefore does not reach it, and
everything it starts can be found and ended with it, also what makes a process group of its own, as
the Python workers of Spark do. Each holds a lock on a file that contains its process id: while the
file is locked, the id still belongs to this process and to no other.
"""

import fcntl
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from omnigraph_assets.local.places import ROOT, Places

_KILL_SECONDS: Final = 60.0
"""The system may take a while to remove a killed process."""
_TERM_SECONDS: Final = 15.0
"""How long a service has to end after SIGTERM."""
_BETWEEN_LOOKS: Final = 0.05
_TAIL: Final = 30


class Service:
    """A process that is running, or was."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.poll()

    @property
    def tail(self) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL:])

    def is_gone(self) -> bool:
        """Whether neither it nor anything it has started is running."""
        # A process that has ended is listed until its parent has asked.
        return self._process.poll() is not None and not _members(self._process.pid)

    def send(self, number: signal.Signals) -> None:
        _send(self._process.pid, number)


class Restarts:
    """Limits restarts: at most `most` within `seconds`, each after a longer delay."""

    def __init__(self, *, most: int = 5, seconds: float = 600.0) -> None:
        self.most = most
        self.seconds = seconds
        self._times: deque[float] = deque()

    @property
    def count(self) -> int:
        """Restarts that count towards the limit."""
        return len(self._times)

    def next_delay(self, now: float) -> float | None:
        """Record a restart and return the seconds to wait before it; None beyond the limit.

        >>> restarts = Restarts(most=3, seconds=60)
        >>> [restarts.next_delay(now) for now in (0, 10, 20, 30)]
        [1.0, 2.0, 4.0, None]
        >>> restarts.next_delay(65)
        4.0
        """
        while self._times and now - self._times[0] > self.seconds:
            self._times.popleft()
        if len(self._times) >= self.most:
            return None
        self._times.append(now)
        return float(2 ** (len(self._times) - 1))


def start_service(
    name: str,
    command: Sequence[str],
    places: Places,
    environment: Mapping[str, str],
    *,
    is_restart: bool = False,
) -> Service:
    """Start a process; its output goes to a log of its name, after a restart to the same one."""
    log = places.logs / f"{name}.log"
    with (
        _claimed(places.processes, name) as held,
        log.open("ab" if is_restart else "wb") as output,
    ):
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(held.fileno(),),  # the process now holds the lock
        )
        held.write(str(process.pid))
    return Service(name, process, log)


def _claimed(directory: Path, name: str) -> TextIO:
    """A file with a service's name, locked. What an ended service has left running holds its own.

    Runs of a fork server do, and `make down` finds them by that file.
    """
    number = 1
    while True:
        file = (directory / (name if number == 1 else f"{name}-{number}")).open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            number += 1
        else:
            file.truncate(0)
            return file


def stop_services(services: Iterable[Service]) -> None:
    """End services together, and all they have started: SIGTERM first, then SIGKILL."""
    left = list(services)
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        for service in left:
            service.send(number)
        end = time.monotonic() + seconds
        while (left := [one for one in left if not one.is_gone()]) and time.monotonic() < end:
            time.sleep(_BETWEEN_LOOKS)


def holder(file: Path) -> int | None:
    """The id of the process that holds a file; None if nobody does."""
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
    """Services that still run though the process that started them has ended."""
    if not places.processes.is_dir():
        return {}
    found = {file.name: holder(file) for file in sorted(places.processes.iterdir())}
    return {name: number for name, number in found.items() if number is not None}


def stop_left_behind(places: Places) -> list[str]:
    """End the services that an earlier start has left, and return their names."""
    left = left_behind(places)
    for number in left.values():
        for kind in (signal.SIGTERM, signal.SIGKILL):
            _send(number, kind)
            end = time.monotonic() + _TERM_SECONDS
            while _members(number) and time.monotonic() < end:
                time.sleep(_BETWEEN_LOOKS)
    return list(left)


def _send(session: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, number)
    if number is signal.SIGKILL:  # SIGTERM is left to the leader, which ends its own in order
        for member in _members(session):
            with suppress(ProcessLookupError):
                os.kill(member, number)


def _members(session: int) -> list[int]:
    """The running processes of a session; without /proc, its leader alone stands for its group."""
    if not Path("/proc/self/stat").exists():
        return [session] if _has_group(session) else []
    numbers = (entry.name for entry in os.scandir("/proc") if entry.name.isdecimal())
    return [int(number) for number in numbers if _session_of(number) == session]


def _session_of(number: str) -> int | None:
    """The session of a process; None if it has ended, also if nobody has asked for its code yet."""
    try:
        stat = Path("/proc", number, "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, _, _, session = stat.rpartition(")")[2].split()[:4]  # the name may hold anything
    return None if state == "Z" else int(session)


def _has_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
