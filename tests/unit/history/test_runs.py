"""What a run in each state answers to each request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConflictError
from omnigraph_core.history.runs import (
    RunRecord,
    RunStatus,
    mark_aborted,
    mark_active,
    mark_failed,
    mark_landed,
    mark_published,
)
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Callable

RUNNING = RunRecord(
    run_id="01R",
    target_branch="main",
    run_branch="__run__01R",
    base_snapshot_id="01C",
    base_manifest_version=4,
    operation_hash="load:parts",
    actor_id="dana",
    status=RunStatus.RUNNING,
    published_snapshot_id=None,
    created_at=10,
    updated_at=10,
)
STATES = {
    RunStatus.RUNNING: RUNNING,
    RunStatus.PUBLISHED: replace(
        RUNNING, status=RunStatus.PUBLISHED, published_snapshot_id="01P", updated_at=20
    ),
    RunStatus.FAILED: replace(RUNNING, status=RunStatus.FAILED, updated_at=20),
    RunStatus.ABORTED: replace(RUNNING, status=RunStatus.ABORTED, updated_at=20),
}
REQUESTS: dict[str, Callable[[RunRecord], RunRecord]] = {
    "publish": lambda run: mark_published(run, "01Q", now=30),
    "abort": lambda run: mark_aborted(run, now=30),
    "fail": lambda run: mark_failed(run, now=30),
}
SAME = "the same"
REFUSED = "refused"
TABLE = [
    ("publish", RunStatus.RUNNING, RunStatus.PUBLISHED),
    ("publish", RunStatus.PUBLISHED, SAME),
    ("publish", RunStatus.FAILED, REFUSED),
    ("publish", RunStatus.ABORTED, REFUSED),
    ("abort", RunStatus.RUNNING, RunStatus.ABORTED),
    ("abort", RunStatus.PUBLISHED, REFUSED),
    ("abort", RunStatus.FAILED, RunStatus.ABORTED),
    ("abort", RunStatus.ABORTED, REFUSED),
    ("fail", RunStatus.RUNNING, RunStatus.FAILED),
    ("fail", RunStatus.PUBLISHED, REFUSED),
    ("fail", RunStatus.FAILED, SAME),
    ("fail", RunStatus.ABORTED, REFUSED),
]


def test_the_table_is_complete() -> None:
    assert len({(request, state) for request, state, _ in TABLE}) == len(REQUESTS) * len(STATES)


@each(("request_name", "state", "outcome"), TABLE)
def test_transitions(request_name: str, state: RunStatus, outcome: str) -> None:
    run, request = STATES[state], REQUESTS[request_name]
    if outcome == REFUSED:
        with pytest.raises(ConflictError, match=f"cannot {request_name} run 01R: it is {state}"):
            request(run)
    elif outcome == SAME:
        assert request(run) == run
    else:
        published = "01Q" if request_name == "publish" else None
        moved = replace(run, status=RunStatus(outcome), updated_at=30)
        assert request(run) == replace(moved, published_snapshot_id=published)


def test_a_clock_that_is_behind_does_not_move_a_run_back_in_time() -> None:
    assert mark_failed(RUNNING, now=3).updated_at == RUNNING.updated_at


@each("state", RunStatus)
def test_work_that_is_visible_was_published(state: RunStatus) -> None:
    run = STATES[state]
    landed = mark_landed(run, "01Q", now=30)
    if state is RunStatus.PUBLISHED:
        assert landed == run
    else:
        assert landed == replace(
            run, status=RunStatus.PUBLISHED, published_snapshot_id="01Q", updated_at=30
        )


@each("state", RunStatus)
def test_only_a_running_run_is_active(state: RunStatus) -> None:
    run = STATES[state]
    updated_at = 30 if state is RunStatus.RUNNING else run.updated_at
    assert mark_active(run, now=30) == replace(run, updated_at=updated_at)


def test_a_run_as_json() -> None:
    assert list(replace(RUNNING, is_expired=True).to_json().items()) == [
        ("run_id", "01R"),
        ("target_branch", "main"),
        ("run_branch", "__run__01R"),
        ("base_snapshot_id", "01C"),
        ("base_manifest_version", 4),
        ("operation_hash", "load:parts"),
        ("actor_id", "dana"),
        ("status", "running"),
        ("published_snapshot_id", None),
        ("created_at", 10),
        ("updated_at", 10),
        ("is_expired", True),
    ]
