"""Ctrl-C in a test run: no process and no directory of the run is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.endless_tests import READY
from tests.support.run_directory import processes_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
ENDLESS = "tests/support/endless_tests.py"


@dataclass(frozen=True, slots=True)
class Process:
    """The time of its start tells a process from a later one with the same id."""

    pid: int
    parent: int = field(compare=False)
    started: int
    name: str


def every_process() -> Iterator[Process]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            head, _, tail = (entry / "stat").read_text().rpartition(") ")
            fields = tail.split()
            if fields[0] != "Z":
                name = head.partition(" (")[2]
                yield Process(int(entry.name), int(fields[1]), int(fields[19]), name)


def descendants(pid: int) -> set[Process]:
    processes = list(every_process())
    found = {process for process in processes if process.pid == pid}
    while True:
        parents = {process.pid for process in found}
        more = {process for process in processes if process.parent in parents} - found
        if not more:
            return found
        found |= more


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    ready, temporary = tmp_path / "ready", tmp_path / "tmp"
    ready.mkdir()
    temporary.mkdir()
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", ENDLESS]
    with (tmp_path / "output").open("wb") as output:
        run = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, READY: str(ready), "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def is_under_way() -> bool:
        assert run.poll() is None, (tmp_path / "output").read_text()
        return {path.name for path in ready.iterdir()} == {"services", "processes"}

    try:
        wait_until(is_under_way, "both tests to be under way", seconds=300)
        (directory,) = temporary.iterdir()
        assert any(processes_of(directory)), "the run finds its own processes by its directory"
        started = descendants(run.pid)
        assert {"weed", "java"} <= {process.name for process in started}
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        code = run.wait(120)
    finally:
        run.kill()
        run.wait()
    assert code == 2, (tmp_path / "output").read_text()
    assert list(temporary.iterdir()) == []
    assert started & set(every_process()) == set()
