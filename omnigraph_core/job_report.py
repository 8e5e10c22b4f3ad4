"""What a job of Spark is described by, and what it did: for the Spark UI, logs and results.

Whoever starts work names it once with `job_facts`; all jobs inside the block carry the facts in
their description and add their metrics to the report, which the result of the work carries as
`spark`. Writers count what they write with `count_written`; a task returns the difference beside
its value, so that counting costs no call.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

T = TypeVar("T")

_NAMED: Final = 3
"""Types or branches that a description names; there may be hundreds."""


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
    job_ids: tuple[int, ...] | None = None
    """The numbers of the job in the Spark UI; behind Spark Connect its page has them."""
    operation_id: str | None = None
    """Behind Spark Connect, how the page of the session calls the job."""
    page: str | None = None
    """The page of the Spark UI that shows the job, if there is a UI."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seconds": round(self.seconds, 3),
            "tasks": self.tasks,
            "failed_tasks": self.failed_tasks,
            **asdict(self.written),
            "shuffle_bytes": self.shuffle_bytes,
            "spilled_bytes": self.spilled_bytes,
            "job_ids": None if self.job_ids is None else list(self.job_ids),
            "operation_id": self.operation_id,
            "page": self.page,
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

    @property
    def result(self) -> dict[str, Any] | None:
        """What a result carries as `spark`."""
        return self.to_json() if self.jobs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkResult:
    """A result of work that Spark may have done."""

    spark: Mapping[str, Any] | None = field(default=None, compare=False)
    """The jobs, as `SparkReport.to_json` lists them; None if Spark ran none."""


class SparkResults(tuple[T, ...]):
    """The results of one call, in a tuple, with the jobs of Spark that led to them."""

    spark: Mapping[str, Any] | None

    def __new__(cls, items: Iterable[T] = (), *, spark: Mapping[str, Any] | None = None) -> Self:
        made = super().__new__(cls, items)
        made.spark = spark
        return made


def spark_member(result: SparkResult | SparkResults[Any]) -> dict[str, object]:
    """The member `spark` of a JSON document; none if Spark ran no job."""
    return {} if result.spark is None else {"spark": result.spark}


@dataclass(frozen=True, slots=True)
class _Scope:
    facts: Mapping[str, str] = field(default_factory=dict)
    report: SparkReport = field(default_factory=SparkReport)
    tables: Mapping[str, str] = field(default_factory=dict)


_SCOPE: Final[ContextVar[_Scope | None]] = ContextVar("job_facts", default=None)


@contextmanager
def job_facts(
    *,
    operation: str | None = None,
    run: str | None = None,
    commit: str | None = None,
    branch: str | Iterable[str] | None = None,
    type: str | Iterable[str] | None = None,
    tables: Mapping[str, str] | None = None,
) -> Iterator[SparkReport]:
    """Describe the jobs of Spark inside the block, and collect their metrics.

    A block inside another adds facts and changes none of the outer ones. It shares the report of
    the operation that it is a part of.

    Args:
        commit: the state that the jobs read; `A..B` where they compare two.
        tables: table keys by location, for `table_facts`.
    """
    outer = _SCOPE.get() or _Scope()
    given = {
        "operation": operation,
        "run": run,
        "commit": commit,
        "branch": _listed(branch),
        "type": _listed(type),
    }
    facts = {name: value for name, value in given.items() if value}
    report = outer.report if "operation" in outer.facts else SparkReport()
    scope = _Scope({**facts, **outer.facts}, report, {**(tables or {}), **outer.tables})
    token = _SCOPE.set(scope)
    try:
        yield report
    finally:
        _SCOPE.reset(token)


def table_facts(locations: Iterable[str]) -> AbstractContextManager[SparkReport]:
    """Describe jobs by the types of the tables at these locations, as far as they are known."""
    known = (_SCOPE.get() or _Scope()).tables
    return job_facts(type=[known[location] for location in locations if location in known])


def _listed(names: str | Iterable[str] | None) -> str | None:
    """
    >>> _listed(["node:Part", "edge:Fits", "node:Part"])
    'node:Part, edge:Fits'
    >>> _listed("abcde")
    'abcde'
    >>> _listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    if names is None or isinstance(names, str):
        return names
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


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
