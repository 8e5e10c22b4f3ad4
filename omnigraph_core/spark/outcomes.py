"""What becomes of a task: a value, or an error that no other attempt would spare the caller.

Errors of ours that say that a retry is useless are results: they reach the driver as they are,
beside those of the other tasks. Anything else is raised in the task, for Spark to try it again;
what is left of it when Spark has given up is found in Spark's own error (`error_of`).
"""

from __future__ import annotations

import json
import re
import traceback
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from omnigraph_core.errors import JobFailed, OmnigraphError
from omnigraph_core.errors.wire import error_document, error_from
from omnigraph_core.job_report import NOTHING, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")

_NAMED: Final = 10
"""Failed tasks that a note names; there may be thousands."""
_TASK: Final = "omnigraph task "
_ERROR: Final = "omnigraph error "
"""How notes begin that a task adds to what it raises."""


@dataclass(frozen=True, slots=True)
class Returned(Generic[R]):
    """What a task returned, and what it wrote to tables meanwhile."""

    value: R
    written: Written = NOTHING


@dataclass(frozen=True, slots=True)
class Failed:
    """The error that a task raised, and where."""

    error: OmnigraphError
    trace: str


def attempt(work: Callable[[T], R], task: T, number: int) -> Returned[R] | Failed:
    """Do a task. An error that a retry cannot change is its outcome; any other is raised.

    Args:
        number: of the task, which is noted on what is raised.
    """
    try:
        return Returned(work(task))
    except OmnigraphError as problem:
        if not problem.retryable:
            return Failed(problem, "".join(traceback.format_exception(problem)))
        note_error(problem)
        raise
    except Exception as problem:
        problem.add_note(f"{_TASK}{number}")
        raise


def note_error(problem: OmnigraphError) -> None:
    """Add the error as a note, which stays in the text that Spark reports, for `error_of`."""
    problem.add_note(f"{_ERROR}{json.dumps(error_document(problem), default=str)}")


def settled(work: Callable[[], R]) -> Future[R]:
    """What became of work in this process, for whoever waits for it in another thread."""
    done: Future[R] = Future()
    try:
        done.set_result(work())
    except Exception as problem:  # noqa: BLE001
        done.set_exception(problem)
    return done


class WorkerTraceback(Exception):
    """Where a task failed, in the words of the process that ran it."""


def error_of(
    trace: str, *, summary: str, name: str, count: int, hint: str | None = None
) -> OmnigraphError | None:
    """The error that the trace of a worker tells of; None if no task of ours raised it.

    Args:
        summary: of the trace.
        name: of the job, which has so many tasks.
    """
    document = re.search(rf"^{_ERROR}(\{{.*\}})$", trace, re.MULTILINE)
    task = re.search(rf"^{_TASK}(\d+)$", trace, re.MULTILINE)
    error: OmnigraphError
    if document is not None:
        error = error_from(json.loads(document.group(1)), 500)
    elif task is not None:
        number = int(task.group(1))
        error = JobFailed(
            f"task {number + 1} of {max(count, number + 1)} of `{name}` failed: {summary}",
            job=name,
            tasks=(number,),
            trace=trace,
            hint=hint,
        )
    else:
        return None
    error.__cause__ = WorkerTraceback(f"\n{trace}")
    return error


def values(outcomes: Sequence[Returned[R] | Failed], *, name: str) -> list[R]:
    """What the tasks of a job returned, in order.

    Raises:
        OmnigraphError: the first error that a task raised, with its facts.
    """
    failures = {
        number: outcome for number, outcome in enumerate(outcomes) if isinstance(outcome, Failed)
    }
    if failures:
        raise _first(failures, len(outcomes), name)
    return [outcome.value for outcome in outcomes if isinstance(outcome, Returned)]


def _first(failures: dict[int, Failed], count: int, name: str) -> OmnigraphError:
    failure = next(iter(failures.values()))
    error = failure.error
    error.__cause__ = WorkerTraceback(f"\n{failure.trace}")
    if len(failures) > 1:
        named = ", ".join(str(other + 1) for other in list(failures)[:_NAMED])
        others = "" if len(failures) <= _NAMED else " and others"
        error.add_note(f"{len(failures)} of {count} tasks of `{name}` failed: {named}{others}")
    return error
