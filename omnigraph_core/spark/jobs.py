"""One Spark job from start to end: it has a name, can be watched and can be stopped.

The job runs in a thread of its own, so that whoever waits for it hears an interrupt at once, and
so do the questions how far it is: an interrupt in the midst of a call would leave the connection
to Spark's process with an answer that nobody reads.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import re
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

from omnigraph_core import interruption
from omnigraph_core.errors import JobFailed, OmnigraphError
from omnigraph_core.job_report import JobMetrics, add_metrics, current_facts
from omnigraph_core.spark.outcomes import error_of, settled
from omnigraph_core.spark.session import is_connect, ui_address
from omnigraph_core.spark.told import advice, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

    from omnigraph_core.job_report import Written

T = TypeVar("T")

_WAIT_SECONDS: Final = 0.05
"""Between two questions of whoever waits whether it is to stop."""

_WATCH_SECONDS: Final = 0.25
"""Between two questions how far a job is."""

_STOP_SECONDS: Final = 10.0
"""How long a stopped job may take to say that it has ended."""

_FACTS: Final = ("run", "commit", "branch", "type")

_EVENTS_MILLISECONDS: Final = 1_000
"""How long Spark may take to count what a job did, after its end."""

_LOG: Final = logging.getLogger("omnigraph.spark")


@dataclass(frozen=True, slots=True)
class Collected:
    """The rows of a job, and what Spark says that it did."""

    rows: list[Row]
    metrics: JobMetrics
    ui: str | None

    def report(self, written: Written) -> None:
        """Report the job to its log and to whoever started it, with what its tasks wrote."""
        _report(replace(self.metrics, written=written), self.ui)


def collect(
    session: SparkSession,
    planned: Callable[[], DataFrame],
    *,
    name: str,
    count: int,
    on_done: Callable[[int], None] | None = None,
) -> Collected:
    """The rows of a frame whose last stage has `count` tasks; stopped with whoever waits for it.

    Raises:
        JobFailed: Spark could not run the job to its end.
    """
    job = _job(session, name, count)
    done = 0

    def collected() -> list[Row]:
        job.frame = planned()
        return job.frame.collect()

    running = _Running(job, collected)
    try:
        with job.watched() if on_done is not None else contextlib.nullcontext():
            while not running.ended.wait(_WAIT_SECONDS):
                interruption.pause()
                if on_done is not None and done < job.done < count:
                    done = job.done
                    on_done(done)
    finally:
        running.stop()
    rows = _returned(running.result(), name, count)
    if on_done is not None:
        on_done(count)
    return Collected(rows, running.metrics, running.ui)


def run(session: SparkSession, work: Callable[[], T], *, name: str) -> T:
    """What calls of Spark return; the jobs they start are stopped with whoever waits for them.

    Raises:
        JobFailed: Spark could not run them to their end.
    """
    value, running = _called(session, work, name)
    _report(running.metrics, running.ui)
    return value


def call(session: SparkSession, work: Callable[[], T], *, name: str) -> T:
    """What calls of Spark return that start no job worth a report.

    Raises:
        JobFailed: Spark did not answer.
    """
    return _called(session, work, name)[0]


def _called(session: SparkSession, work: Callable[[], T], name: str) -> tuple[T, _Running[T]]:
    running = _Running(_job(session, name, 0), work)
    try:
        while not running.ended.wait(_WAIT_SECONDS):
            interruption.pause()
    finally:
        running.stop()
    return _returned(running.result(), name, 0), running


def _report(metrics: JobMetrics, ui: str | None) -> None:
    described = describe(metrics.name, current_facts())
    _LOG.info("%s: %s, Spark UI %s", described, metrics.to_json(), ui or "unknown")
    add_metrics(metrics, ui)


def describe(name: str, facts: Mapping[str, str]) -> str:
    """How a job is called in the Spark UI.

    >>> describe("compare keys", {"operation": "load", "run": "01J", "branch": "main"})
    'load: compare keys (run 01J, branch main)'
    """
    operation = facts.get("operation")
    told = ", ".join(f"{fact} {facts[fact]}" for fact in _FACTS if fact in facts)
    named = name if operation is None else f"{operation}: {name}"
    return f"{named} ({told})" if told else named


def _job(session: SparkSession, name: str, count: int) -> _Job:
    make = _ConnectJob if is_connect(session) else _ClassicJob
    return make(session, f"omnigraph-{uuid.uuid4().hex}", name, count, current_facts())


def _returned(done: Future[T], name: str, count: int) -> T:
    problem = done.exception()
    if problem is None:
        return done.result()
    if isinstance(problem, OmnigraphError):
        raise problem
    raised = error_of(
        str(problem), summary=summary(problem), name=name, count=count, hint=advice(problem)
    )
    if raised is not None:
        raise raised
    raise JobFailed(
        f"Spark could not run `{name}`: {summary(problem)}",
        job=name,
        trace=str(problem),
        hint=advice(problem),
        retryable=_is_lost(problem),
    ) from problem


def _is_lost(problem: BaseException) -> bool:
    """Whether the driver is gone: another one may do the job."""
    if isinstance(problem, ConnectionError) or "StatusCode.UNAVAILABLE" in str(problem):
        return True
    from py4j.protocol import Py4JNetworkError

    return isinstance(problem, Py4JNetworkError)


class _Job(Protocol):
    """What differs between a session in this process and one behind a server."""

    session: SparkSession
    name: str
    count: int
    frame: DataFrame | None
    """What the job collects, if it is one frame."""
    done: int
    """Tasks of the last stage that are done, as far as is known."""

    def thread(self, target: Callable[[], None]) -> threading.Thread: ...
    def mark(self) -> None: ...
    def watched(self) -> contextlib.AbstractContextManager[None]: ...
    def cancel(self) -> None: ...
    def measured(self, metrics: JobMetrics) -> JobMetrics: ...
    def page(self, ui: str, metrics: JobMetrics) -> str | None: ...


class _Running(Generic[T]):
    """A job in its thread."""

    def __init__(self, job: _Job, work: Callable[[], T]) -> None:
        self.ended = threading.Event()
        self._job = job
        self._work = work
        self._outcome: Future[T] | None = None
        self.metrics = JobMetrics(job.name, 0.0, job.count)
        self.ui: str | None = None
        job.thread(self._run).start()

    def _run(self) -> None:
        def marked() -> T:
            self._job.mark()
            return self._work()

        began = time.monotonic()
        try:
            self._outcome = settled(marked)
            self.metrics = replace(self.metrics, seconds=time.monotonic() - began)
            if self._outcome.exception() is None:
                self._measure()
        finally:
            self.ended.set()

    def _measure(self) -> None:
        """Ask Spark what the job did; a job whose numbers are lost is done all the same."""
        measured = settled(lambda: self._job.measured(self.metrics))
        if measured.exception() is None:
            self.metrics = measured.result()
        found = settled(lambda: ui_address(self._job.session))
        self.ui = found.result() if found.exception() is None else None
        if self.ui is not None:
            self.metrics = replace(self.metrics, page=self._job.page(self.ui, self.metrics))

    def result(self) -> Future[T]:
        assert self._outcome is not None
        return self._outcome

    def stop(self) -> None:
        """Cancel the job if it has not ended, and wait a while for its end."""
        if self.ended.is_set():
            return
        threading.Thread(target=self._cancel, daemon=True).start()
        self.ended.wait(_STOP_SECONDS)

    def _cancel(self) -> None:
        """Again and again: a job that was still being planned is not there to be cancelled."""
        while not self.ended.is_set():
            settled(self._job.cancel)
            self.ended.wait(_WATCH_SECONDS)


class _ClassicJob:
    """A job of a session whose driver runs beside this process: known by its group."""

    def __init__(
        self, session: SparkSession, tag: str, name: str, count: int, facts: Mapping[str, str]
    ) -> None:
        self.session = session
        self.name = name
        self.count = count
        self.frame: DataFrame | None = None
        self.done = 0
        self._context: Any = session.sparkContext
        self._tag = tag
        self._description = describe(name, facts)

    def thread(self, target: Callable[[], None]) -> threading.Thread:
        from pyspark.util import InheritableThread

        return InheritableThread(target=target, session=self.session, daemon=True)

    def mark(self) -> None:
        self._context.setJobGroup(self._tag, self._description, interruptOnCancel=True)

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._tag)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_WATCH_SECONDS):
                found = settled(self._completed)
                if found.exception() is None:  # else the job has ended, or its process
                    self.done = max(self.done, found.result())

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _completed(self) -> int:
        """Of the last stage: the one before it hands the tasks out, maybe in a job of its own."""
        tracker = self._context.statusTracker()
        for job_id in sorted(tracker.getJobIdsForGroup(self._tag), reverse=True):
            job = tracker.getJobInfo(job_id)
            if job is not None and len(job.stageIds) > 1:
                stage = tracker.getStageInfo(max(job.stageIds))
                return 0 if stage is None else int(stage.numCompletedTasks)
        return 0

    def measured(self, metrics: JobMetrics) -> JobMetrics:
        """By the numbers that the Spark UI shows, which Spark keeps with or without it."""
        from py4j.protocol import Py4JJavaError

        context = self._context._jsc.sc()
        context.listenerBus().waitUntilEmpty(_EVENTS_MILLISECONDS)
        store = context.statusStore()
        failed = shuffled = spilled = 0
        job_ids = tuple(sorted(self._context.statusTracker().getJobIdsForGroup(self._tag)))
        for job_id in job_ids:
            stages = store.job(job_id).stageIds().mkString(",")
            for stage_id in map(int, filter(None, stages.split(","))):
                try:
                    stage = store.lastStageAttempt(stage_id)
                except Py4JJavaError:  # it was skipped, its output is there from before
                    continue
                failed += stage.numFailedTasks()
                shuffled += stage.shuffleWriteBytes()
                spilled += stage.diskBytesSpilled()
        return replace(
            metrics,
            failed_tasks=failed,
            shuffle_bytes=shuffled,
            spilled_bytes=spilled,
            job_ids=job_ids,
        )

    def page(self, ui: str, metrics: JobMetrics) -> str | None:
        """Of its last job: those before it prepare what that one reads."""
        return f"{ui}/jobs/job/?id={metrics.job_ids[-1]}" if metrics.job_ids else None


class _ConnectJob:
    """A job behind a Spark Connect server: known by its tag, which also holds its name.

    The server describes jobs by itself, so what they are about are tags as well.
    """

    def __init__(
        self, session: SparkSession, tag: str, name: str, count: int, facts: Mapping[str, str]
    ) -> None:
        self.session = session
        self.name = name
        self.count = count
        self.frame: DataFrame | None = None
        self.done = 0
        self._tag = f"{tag}-{re.sub('[^A-Za-z0-9_-]+', '-', name)}"
        # A comma would end a tag.
        told = [
            f"{fact}={value}".replace(", ", "+").replace(",", "_") for fact, value in facts.items()
        ]
        self._tags = (*session.getTags(), *told, self._tag)
        self._thread: threading.Thread | None = None

    def thread(self, target: Callable[[], None]) -> threading.Thread:
        self._thread = threading.Thread(target=target, daemon=True)
        return self._thread

    def mark(self) -> None:
        for tag in self._tags:
            self.session.addTag(tag)

    def cancel(self) -> None:
        self.session.interruptTag(self._tag)

    def measured(self, metrics: JobMetrics) -> JobMetrics:
        """By the numbers of the plan, which come with its result."""
        info = None if self.frame is None else self.frame.executionInfo
        if info is None:
            return metrics
        metrics = replace(metrics, operation_id=info.operation_id)
        told: Any = info.metrics
        if told is None:
            return metrics
        numbers: Counter[str] = Counter()
        for node in told._metrics:
            for number in node.metrics:
                numbers[number.name] += int(number.value)
        return replace(
            metrics,
            shuffle_bytes=numbers["shuffleBytesWritten"],
            spilled_bytes=numbers["spillSize"],
        )

    def page(self, ui: str, metrics: JobMetrics) -> str | None:
        """Of the session: it lists operations with the numbers of their jobs, which clients are
        not told."""
        client = self.session.client
        user = base64.urlsafe_b64encode(str(client._user_id).encode()).decode()
        return f"{ui}/connect/session/?id={client._session_id}&userId={user}"

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        handler = cast("ProgressHandler", self._heard)  # any function does
        self.session.registerProgressHandler(handler)
        try:
            yield
        finally:
            self.session.removeProgressHandler(handler)

    def _heard(
        self,
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Told of every job of the session, in the thread that waits for it."""
        if threading.current_thread() is self._thread:
            known = sorted(stages or (), key=lambda stage: stage.stage_id)
            if len(known) > 1 and known[-1].num_tasks == self.count:
                self.done = max(self.done, known[-1].num_completed_tasks)
