"""Jobs at work: each waits for its turn, reports, and ends once: done, failed or cancelled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.errors import (
    ConflictError,
    InvariantBroken,
    MergeConflicts,
    OmnigraphError,
    QueryCancelled,
    StorageError,
)
from omnigraph_core.errors.wire import error_document
from omnigraph_core.server.job_records import JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.server.job_records import JobRecord, JobStore
    from omnigraph_core.server.spool import Claim
    from omnigraph_core.write.progress import Progress

_REPORT_SECONDS: Final = 0.2
"""Between two looks at, and reports to, the spool."""


class RunningJob:
    """A job that this process works on. Its claim is held until it has ended."""

    def __init__(
        self,
        record: JobRecord,
        store: JobStore,
        claim: Claim,
        books: Omnigraph,
        held: ExitStack,
        *,
        describe: Callable[[OmnigraphError], dict[str, Any]] = error_document,
        is_staged: bool = False,
    ) -> None:
        self.record = record
        self.books = books
        self._store = store
        self._claim = claim
        self._held = held
        self._describe = describe
        self._is_staged = is_staged
        self._lock = threading.Lock()
        self._reported = 0.0
        self._is_ended = False

    def do(self, work: Callable[[], object]) -> None:
        """Work, unless it has ended before its turn, and tell how that ended."""
        try:
            self._tell(has_begun=True)
            self.check(is_pressing=True)
            self._finish(work())
        except QueryCancelled:
            self._end(JobStatus.CANCELLED, self.books.abort_run)
        except MergeConflicts as refused:
            # What was staged stays on the branch of the run, to be published with choices.
            leave = self.books.get_run if self._is_staged else self.books.fail_run
            self._end(JobStatus.FAILED, leave, error=self._describe(refused))
        except OmnigraphError as problem:
            self._end(JobStatus.FAILED, self.books.fail_run, error=self._describe(problem))
        finally:
            bug = InvariantBroken(f"`{self.record.operation}` ends with an answer or an error")
            self._end(JobStatus.FAILED, self.books.fail_run, error=error_document(bug))

    def hear(self, progress: Progress) -> None:
        """Take note of progress; raises if the job is to stop.

        Raises:
            QueryCancelled: it is.
        """
        self.record = self.record.moved(
            progress={**self.record.progress, str(progress.step): progress.rows}
        )
        self.check()

    def check(self, *, is_pressing: bool = False) -> None:
        """
        Raises:
            QueryCancelled: the job is to stop.
        """
        now = time.monotonic()
        if now - self._reported < _REPORT_SECONDS and not is_pressing:
            return
        self._reported = now
        if self._is_ended or self._store.is_to_stop(self.record.job_id):
            raise QueryCancelled
        self._tell()

    def give_up(self, reason: str) -> None:
        """Fail it from outside, unless its work turns out to be visible."""
        problem = StorageError(f"`{self.record.operation}` {_UNDONE}: {reason}", retryable=True)
        self._end(JobStatus.FAILED, self.books.fail_run, error=error_document(problem))

    def leave_if_asked(self) -> None:
        """End it if it is to stop and still waits for its turn."""
        if self._store.is_to_stop(self.record.job_id):
            self._end(JobStatus.CANCELLED, self.books.abort_run, is_waiting=True)

    def _finish(self, result: object) -> None:
        if self._is_staged:
            self._end(JobStatus.DONE, self.books.get_run, result=result)
        else:
            self._end(JobStatus.DONE, self.books.publish_run, result=result)

    def _tell(self, **changes: Any) -> None:
        with self._lock:
            if not self._is_ended:
                self.record = self.record.moved(**changes)
                with contextlib.suppress(StorageError):  # a report may be missed, work may not
                    self._store.write(self.record)

    def _end(
        self,
        status: JobStatus,
        settle: Callable[[str], object],
        *,
        is_waiting: bool = False,
        **changes: Any,
    ) -> None:
        """Record the end, of the run first; the second end of a job is none.

        Args:
            is_waiting: only if it has not begun.
        """
        with self._lock:
            if self._is_ended or (is_waiting and self.record.has_begun):
                return
            self._is_ended = True
        try:
            try:
                settle(self.record.job_id)
            except ConflictError:
                if status is JobStatus.FAILED and self._is_published():
                    status, changes = JobStatus.DONE, {}
            except OmnigraphError:  # the store does not answer, or the branch is gone
                pass
            ended = self.record.moved(status=status, **changes)
            self._keep_end(ended)
            self.record = ended  # not before: nobody is told what another worker would not say
        finally:
            self._claim.release()
            self._held.close()

    def _keep_end(self, ended: JobRecord) -> None:
        try:
            self._store.write(ended)
        except StorageError:  # for less there may be room; if not, the registry tells
            with contextlib.suppress(StorageError):
                self._store.write(ended.in_brief())

    def _is_published(self) -> bool:
        try:
            return self.books.get_run(self.record.job_id).status == "published"
        except OmnigraphError:
            return False


_UNDONE: Final = "was not finished"


class Crew:
    """Threads that do so many jobs at a time, in the order they came."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._waiting: deque[tuple[RunningJob, Callable[[], object]]] = deque()
        self._at_work = 0
        self._is_watched = False

    def take(self, job: RunningJob, work: Callable[[], object]) -> None:
        with self._lock:
            self._waiting.append((job, work))
            if self._at_work < self._size:
                self._at_work += 1
                _begin(self._work)
            elif not self._is_watched:
                self._is_watched = True
                _begin(self._watch)

    def _work(self) -> None:
        is_idle = False
        try:
            while (order := self._next()) is not None:
                job, work = order
                job.do(work)
            is_idle = True
        finally:
            if not is_idle:
                _begin(self._work)  # of one that a bug has ended, another takes the place

    def _next(self) -> tuple[RunningJob, Callable[[], object]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._at_work -= 1
            return None

    def _watch(self) -> None:
        """Let those go that are cancelled while they wait."""
        while True:
            time.sleep(_REPORT_SECONDS)
            with self._lock:
                waiting = tuple(self._waiting)
                self._is_watched = bool(waiting)
            if not waiting:
                return
            for job, _ in waiting:
                job.leave_if_asked()


def _begin(work: Callable[[], None]) -> None:
    # Not to be waited for when the process ends: a server that stops has waited as long as it may.
    threading.Thread(target=work, name="omnigraph-jobs", daemon=True).start()
