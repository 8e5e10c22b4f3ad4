"""Functions in fresh interpreters: what they say, how they end."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.support.processes import hear, say, spawn
from tests.support.waiting import wait_until

HERE = "tests.integration.test_processes"


def greet(name: str, options: dict[str, int]) -> list[object]:
    return [f"hello {name}", options, os.environ.get("GREETING"), os.getpid()]


def echo() -> None:
    say("ready")
    while (line := hear()) is not None:
        say(line.upper())


def fail() -> None:
    sys.stdout.write("said before\n")
    raise ValueError("broken on purpose")


def fall_silent() -> None:
    say("last words")
    signal.pause()


def hold(path: str) -> None:
    """A lock is let go of when its holder ends, and not before."""
    with Path(path).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        say("held")
        signal.pause()


def hold_in_a_child(path: str) -> None:
    child = spawn(f"{HERE}:hold", path)
    say(child.next_line())
    signal.pause()


def becomes_free(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_result_comes_back() -> None:
    worker = spawn(f"{HERE}:greet", "Zoë", {"a": 1}, env={"GREETING": "x"})
    assert worker.wait().result() == ["hello Zoë", {"a": 1}, "x", worker.pid]


def test_a_worker_can_be_talked_to() -> None:
    with spawn(f"{HERE}:echo") as worker:
        assert worker.next_line() == "ready"
        for word in ("one", "two"):
            worker.send(word)
            assert worker.next_line() == word.upper()


def test_lines_come_while_it_runs_and_stop_when_it_is_killed() -> None:
    worker = spawn(f"{HERE}:fall_silent")
    lines = worker.lines()
    assert next(lines) == "last words"
    worker.kill()
    assert list(lines) == []
    assert list(worker.lines()) == []
    outcome = worker.wait()
    assert (outcome.returncode, outcome.stdout) == (-signal.SIGKILL, "last words\n")


def test_a_failure_carries_its_errors() -> None:
    outcome = spawn(f"{HERE}:fail").wait()
    assert outcome.returncode == 1
    assert outcome.stdout == "said before\n"
    with pytest.raises(AssertionError, match="broken on purpose"):
        outcome.check()


def test_a_worker_that_ends_early_says_why() -> None:
    with spawn(f"{HERE}:fail") as worker:
        assert worker.next_line() == "said before"
        with pytest.raises(AssertionError, match="broken on purpose"):
            worker.next_line()


def test_waiting_is_bounded() -> None:
    worker = spawn(f"{HERE}:fall_silent")
    assert worker.next_line() == "last words"
    with pytest.raises(AssertionError, match="said nothing"):
        worker.next_line(timeout=0.01)
    with pytest.raises(AssertionError, match="did not end"):
        worker.wait(timeout=0.01)
    assert worker.wait().returncode == -signal.SIGKILL


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """Killed, the parent cannot end its worker: the worker has to notice."""
    path = tmp_path / "lock"
    with path.open("w") as file:
        with spawn(f"{HERE}:hold_in_a_child", str(path)) as parent:
            assert parent.next_line() == "held"
            assert not becomes_free(file)
        wait_until(lambda: becomes_free(file), "the end of the worker")
