"""One Spark job from start to end: it has a name, can be watched and can be stopped.

The job runs in a thread of its own, so that whoever waits for it hears an interrupt at once, and
so do the questions how far it is: an interrupt in the midst of a call would leave the connection
to Spark's process with an answer that nobody reads.
"""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast

from omnigraph_core import interruption
from omnigraph_core.errors import JobFailed, OmnigraphError
from omnigraph_core.spark.outcomes import error_of, settled
from omnigraph_core.spark.session import is_connect
from omnigraph_core.spark.told import advice, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

T = TypeVar("T")

_WAIT_SECONDS: Final = 0.05
"""Between two questions of whoever waits whether it is to stop."""

_WATCH_SECONDS: Final = 0.25
"""Between two questions how far a job is."""

_STOP_SECONDS: Final = 10.0
"""How long a stopped job may take to say that it has ended."""


def collect(
    session: SparkSession,
    planned: Callable[[], DataFrame],
    *,
    name: str,
    count: int,
    on_done: Callable[[int], None] | None = None,
) -> list[Row]:
    """The rows of a frame whose last stage has `count` tasks; stopped with whoever waits for it.

    Raises:
        JobFailed: Spark could not run the job to its end.
    """
    job = _job(session, name, count)
    done = 0
    running = _Running(job, lambda: planned().collect())
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
    return rows


def run(session: SparkSession, work: Callable[[], T], *, name: str) -> T:
    """What calls of Spark return; the jobs they start are stopped with whoever waits for them.

    Raises:
        JobFailed: Spark could not run them to their end.
    """
    running = _Running(_job(session, name, 0), work)
    try:
        while not running.ended.wait(_WAIT_SECONDS):
            interruption.pause()
    finally:
        running.stop()
    return _returned(running.result(), name, 0)


def _job(session: SparkSession, name: str, count: int) -> _Job:
    make = _ConnectJob if is_connect(session) else _ClassicJob
    return make(session, f"omnigraph-{uuid.uuid4().hex}", name, count)


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
    if isinstance(problem, ConnectionError):
        return True
    from py4j.protocol import Py4JNetworkError

    return isinstance(problem, Py4JNetworkError)


class _Job(Protocol):
    """What differs between a session in this process and one behind a server."""

    done: int
    """Tasks of the last stage that are done, as far as is known."""

    def thread(self, target: Callable[[], None]) -> threading.Thread: ...
    def mark(self) -> None: ...
    def watched(self) -> contextlib.AbstractContextManager[None]: ...
    def cancel(self) -> None: ...


class _Running(Generic[T]):
    """A job in its thread."""

    def __init__(self, job: _Job, work: Callable[[], T]) -> None:
        self.ended = threading.Event()
        self._job = job
        self._work = work
        self._outcome: Future[T] | None = None
        job.thread(self._run).start()

    def _run(self) -> None:
        def marked() -> T:
            self._job.mark()
            return self._work()

        try:
            self._outcome = settled(marked)
        finally:
            self.ended.set()

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

    def __init__(self, session: SparkSession, tag: str, name: str, count: int) -> None:
        self.done = 0
        self._session = session
        self._context = session.sparkContext
        self._tag = tag
        self._name = name
        self._count = count

    def thread(self, target: Callable[[], None]) -> threading.Thread:
        from pyspark.util import InheritableThread

        return InheritableThread(target=target, session=self._session, daemon=True)

    def mark(self) -> None:
        self._context.setJobGroup(self._tag, self._name, interruptOnCancel=True)

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


class _ConnectJob:
    """A job behind a Spark Connect server: known by its tag, which also holds its name."""

    def __init__(self, session: SparkSession, tag: str, name: str, count: int) -> None:
        self.done = 0
        self._session = session
        self._tag = f"{tag}-{re.sub('[^A-Za-z0-9_-]+', '-', name)}"
        self._inherited = session.getTags()
        self._count = count
        self._thread: threading.Thread | None = None

    def thread(self, target: Callable[[], None]) -> threading.Thread:
        self._thread = threading.Thread(target=target, daemon=True)
        return self._thread

    def mark(self) -> None:
        for tag in (*self._inherited, self._tag):
            self._session.addTag(tag)

    def cancel(self) -> None:
        self._session.interruptTag(self._tag)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        handler = cast("ProgressHandler", self._heard)  # any function does
        self._session.registerProgressHandler(handler)
        try:
            yield
        finally:
            self._session.removeProgressHandler(handler)

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
            if len(known) > 1 and known[-1].num_tasks == self._count:
                self.done = max(self.done, known[-1].num_completed_tasks)
