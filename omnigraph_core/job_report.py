"""What a job of Spark is described by, and what it did: for the Spark UI, logs and results.

Whoever starts work names it once with `job_facts`; all jobs inside the block carry the facts in
their description and add their metrics to the report. Writers count what they write with
`count_written`; a task returns the difference beside its value, so that counting costs no call.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Written:
    """Rows, bytes and files that were written to tables."""

    rows: int = 0
    bytes: int = 0
    files: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.rows + other.rows, self.bytes + other.bytes, self.files + other.files)

    def __sub__(self, other: Written) -> Written:
        return Written(self.rows - other.rows, self.bytes - other.bytes, self.files - other.files)


NOTHING: Final = Written()


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """What one job of Spark did.

    Tasks count what they write themselves, only those attempts that won. The other numbers are
    Spark's own; behind Spark Connect it tells fewer of them, and what is unknown is None.
    """

    name: str
    seconds: float
    tasks: int
    written: Written = NOTHING
    failed_tasks: int | None = None
    shuffle_bytes: int | None = None
    spilled_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seconds": round(self.seconds, 3),
            "tasks": self.tasks,
            "failed_tasks": self.failed_tasks,
            **asdict(self.written),
            "shuffle_bytes": self.shuffle_bytes,
            "spilled_bytes": self.spilled_bytes,
        }


@dataclass(slots=True)
class SparkReport:
    """The jobs of Spark that did some work, and the address of the Spark UI that shows them."""

    ui: str | None = None
    jobs: list[JobMetrics] = field(default_factory=list)

    def add(self, metrics: JobMetrics, ui: str | None) -> None:
        self.ui = ui
        self.jobs.append(metrics)

    def to_json(self) -> dict[str, Any]:
        return {"ui": self.ui, "jobs": [job.to_json() for job in self.jobs]}


@dataclass(frozen=True, slots=True)
class _Scope:
    facts: Mapping[str, str] = field(default_factory=dict)
    report: SparkReport = field(default_factory=SparkReport)


_SCOPE: Final[ContextVar[_Scope | None]] = ContextVar("job_facts", default=None)


@contextmanager
def job_facts(
    *,
    operation: str | None = None,
    run: str | None = None,
    branch: str | None = None,
    type: str | None = None,
) -> Iterator[SparkReport]:
    """Describe the jobs of Spark inside the block, and collect their metrics.

    A block inside another adds facts, changes none of the outer ones and shares the report.
    """
    outer = _SCOPE.get()
    given = {"operation": operation, "run": run, "branch": branch, "type": type}
    facts = {name: value for name, value in given.items() if value is not None}
    scope = _Scope(facts) if outer is None else _Scope({**facts, **outer.facts}, outer.report)
    token = _SCOPE.set(scope)
    try:
        yield scope.report
    finally:
        _SCOPE.reset(token)


def current_facts() -> Mapping[str, str]:
    """The facts of the jobs that are started here."""
    scope = _SCOPE.get()
    return {} if scope is None else scope.facts


def add_metrics(metrics: JobMetrics, ui: str | None) -> None:
    """Add the metrics of a job to the report of whoever started it."""
    scope = _SCOPE.get()
    if scope is not None:
        scope.report.add(metrics, ui)


_counting: Final = threading.Lock()
_written = NOTHING


def count_written(rows: int, bytes: int, files: int) -> None:
    """Count what this process has written to a table."""
    global _written
    with _counting:
        _written += Written(rows, bytes, files)


def written_so_far() -> Written:
    """What this process has written in its life."""
    return _written
