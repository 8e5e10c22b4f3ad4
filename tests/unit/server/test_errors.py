"""Errors as clients are told them: what is theirs to know, and no more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from omnigraph_core.errors import BranchNotFound, JobFailed
from omnigraph_core.errors.wire import error_document
from omnigraph_core.server.errors import told_document

if TYPE_CHECKING:
    import pytest


def test_the_trace_of_a_task_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    trace = 'File "/opt/worker/secret_place.py", line 7, in divide'
    problem = JobFailed("task 2 failed", job="load", tasks=(2,), trace=trace)
    with caplog.at_level(logging.ERROR, "omnigraph.server"):
        told = told_document(problem)
    assert "secret_place" not in str(told)
    assert told["details"] == {"job": "load", "tasks": [2]}
    assert "secret_place" in caplog.text
    assert "secret_place" in str(error_document(problem))  # at hand it is one's own


def test_other_errors_are_told_as_they_are() -> None:
    problem = BranchNotFound("no branch `x`", hint="did you mean `y`?")
    assert told_document(problem) == error_document(problem)
