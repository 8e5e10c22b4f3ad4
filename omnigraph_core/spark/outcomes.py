"""What becomes of a task: a value, or an error that is carried as a value until all are done.

This is the one place of Spark jobs where any exception is caught. An error of a task is a result,
so that it reaches the driver as the error it is, once, and beside those of the other tasks.
"""

from __future__ import annotations

import traceback
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from omnigraph_core.errors import JobFailed, OmnigraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")

_NAMED: Final = 10
"""Failed tasks that a note names; there may be thousands."""


@dataclass(frozen=True, slots=True)
class Returned(Generic[R]):
    """What a task returned."""

    value: R


@dataclass(frozen=True, slots=True)
class Failed:
    """What a task raised: an error of ours as it was, or the text of any other."""

    error: OmnigraphError | None
    summary: str
    trace: str


def attempt(work: Callable[[T], R], task: T) -> Returned[R] | Failed:
    """Do a task; whatever it raises is its outcome."""
    try:
        return Returned(work(task))
    except OmnigraphError as problem:
        return Failed(problem, problem.message, _trace(problem))
    except Exception as problem:  # noqa: BLE001
        summary = "".join(traceback.format_exception_only(problem)).strip()
        return Failed(None, summary, _trace(problem))


def settled(work: Callable[[], R]) -> Future[R]:
    """What became of work in this process, for whoever waits for it in another thread."""
    done: Future[R] = Future()
    try:
        done.set_result(work())
    except Exception as problem:  # noqa: BLE001
        done.set_exception(problem)
    return done


def _trace(problem: Exception) -> str:
    return "".join(traceback.format_exception(problem))


class WorkerTraceback(Exception):
    """Where a task failed, in the words of the process that ran it."""


def values(outcomes: Sequence[Returned[R] | Failed], *, name: str) -> list[R]:
    """What the tasks of a job returned, in order.

    Raises:
        OmnigraphError: the first error that a task raised, with its facts.
        JobFailed: the first failure is not an error of ours.
    """
    failures = {
        number: outcome for number, outcome in enumerate(outcomes) if isinstance(outcome, Failed)
    }
    if failures:
        raise _first(failures, len(outcomes), name)
    return [outcome.value for outcome in outcomes if isinstance(outcome, Returned)]


def _first(failures: dict[int, Failed], count: int, name: str) -> OmnigraphError:
    number, failure = next(iter(failures.items()))
    error = failure.error
    if error is None:
        error = JobFailed(
            f"task {number + 1} of {count} of `{name}` failed: {failure.summary}",
            job=name,
            tasks=tuple(failures),
            trace=failure.trace,
        )
    error.__cause__ = WorkerTraceback(f"\n{failure.trace}")
    if len(failures) > 1:
        named = ", ".join(str(other + 1) for other in list(failures)[:_NAMED])
        others = "" if len(failures) <= _NAMED else " and others"
        error.add_note(f"{len(failures)} of {count} tasks of `{name}` failed: {named}{others}")
    return error
