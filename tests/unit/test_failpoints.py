"""Failpoints fail when armed and only then."""

from __future__ import annotations

import time

import pytest

from omnigraph_core import failpoints
from omnigraph_core.errors import ConfigError, InvariantBroken, StorageError

POINT = failpoints.declare("test.point", "used by this test")


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
