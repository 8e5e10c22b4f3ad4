"""Failpoints fail when armed and only then."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from omnigraph_core import failpoints
from omnigraph_core.errors import ConfigError, InvariantBroken, StorageError

POINT = failpoints.declare("test.point", "used by this test")

CHILD = """
from omnigraph_core import failpoints
point = failpoints.declare("child.point", "in a child process")
point.hit()
print("survived")
"""


def run_child(plan: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHILD],
        env={"OMNIGRAPH_FAILPOINTS": plan, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_unarmed_point_does_nothing() -> None:
    assert POINT.hit() is None


def test_an_error_is_retryable_and_ends_with_the_block() -> None:
    with failpoints.arm("test.point", "error"):
        with pytest.raises(StorageError, match=r"test\.point") as raised:
            POINT.hit()
        assert raised.value.retryable
    assert POINT.hit() is None


def test_a_counted_plan_runs_out() -> None:
    with failpoints.arm("test.point", "error*2"):
        for _ in range(2):
            with pytest.raises(StorageError):
                POINT.hit()
        assert POINT.hit() is None


def test_sleep_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with failpoints.arm("test.point", "sleep(30)"):
        POINT.hit()
    assert slept == [0.03]


def test_a_crash_ends_the_process_at_once() -> None:
    crashed = run_child("child.point=crash; other=error")
    assert crashed.returncode == -signal.SIGKILL
    assert crashed.stdout == ""


def test_a_child_without_a_plan_survives() -> None:
    assert run_child("").stdout == "survived\n"


def test_a_malformed_variable_is_named() -> None:
    for plan in ("child.point", "=crash", "child.point=explode"):
        refused = run_child(plan)
        assert refused.returncode == 1
        assert "ConfigError" in refused.stderr
        assert "OMNIGRAPH_FAILPOINTS" in refused.stderr


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"no failpoint `nope`"), failpoints.arm("nope", "error"):
        pass
    for plan in ("explode", "sleep", "error*", ""):
        with pytest.raises(ConfigError, match="malformed"), failpoints.arm("test.point", plan):
            pass
    with pytest.raises(InvariantBroken):
        failpoints.declare("test.point", "again")


def test_declared_points_are_listed() -> None:
    assert POINT in failpoints.declared()
