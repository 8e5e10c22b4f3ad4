"""Failpoints of a process are armed by its environment."""

from __future__ import annotations

import signal
import subprocess
import sys

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
