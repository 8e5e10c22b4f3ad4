"""Long work beside the request that asked for it: `Prefer: respond-async` makes an operation a job.

A job is a run of the registry: its id is the id of the run, which tells how it ended even when the
spool is gone. Work that writes rows goes to the branch of the run and is published from there;
maintenance works on its branch and the run only records it. A job ends once, in one state.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from omnigraph_core.clock import now_us
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, OmnigraphError, StorageError
from omnigraph_core.history.runs import JOB_PREFIX, RunStatus
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.server.access import if_commit
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import failure, request_id_of, told_document
from omnigraph_core.server.idempotency import key_of
from omnigraph_core.server.job_records import JobRecord, JobStatus, JobStore, job_of_run
from omnigraph_core.server.job_work import Crew, RunningJob
from omnigraph_core.server.settings import ACTOR_JOBS, JOBS_MAX
from omnigraph_core.server.spool import digest_of, spool_of
from omnigraph_core.server.threads import reading, writing
from omnigraph_core.server.wire import ErrorCode
from omnigraph_core.settings import SERVER_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.server.spool import Claim, Spool
    from omnigraph_core.write.progress import Listener, Progress

Check: TypeAlias = "Callable[[], None]"
Call: TypeAlias = "Callable[[Listener, Check], object]"

_PATIENCE: Final = 5.0
"""Seconds a request to cancel waits for the job to end."""
_GLANCE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done as a job.

    `work` is told the run and where to report; with `is_staged` it writes to the branch of the run
    and publishes it itself.
    """

    operation: str
    work: Callable[[RunRecord, Omnigraph, RunningJob], object]
    digest: str
    """Tells the request from others under the same key."""
    branch: str | None = None
    is_staged: bool = False
    is_stoppable: bool = False
    held: ExitStack = field(default_factory=ExitStack)
    """Given back when the job has ended."""
    size: int | None = None
    """Bytes of what was sent."""
    target: str | None = None
    """The branch the run is registered for, if it is not that one."""
    describe: Callable[[OmnigraphError], dict[str, Any]] = told_document
    make_ready: Callable[[], object] | None = None
    """What is done before there is a job: raises if there can be none."""


async def maybe(
    request: Request,
    graph: Served,
    *,
    operation: str,
    call: Call,
    demand: Callable[[], object],
    branch: str | None = None,
) -> Response:
    """The answer of a call, or with `Prefer: respond-async` a job that does it.

    Args:
        call: does the work and returns the document of the answer. It is told where to report
            progress, and what to ask whether to go on.
        demand: raises if the actor may not; asked before a job begins.
        branch: the one that the work is about.
    """
    if not is_wanted(request):
        return answer(await writing(lambda: call(_unheard, _unasked)))
    await reading(demand)
    order = Order(
        operation,
        lambda _run, _books, job: call(job.hear, job.check),
        _digest(request),
        branch=branch,
    )
    return await begin(request, graph, order)


def is_wanted(request: Request) -> bool:
    """Whether a request asks for a job."""
    preferences = ",".join(request.headers.getlist("prefer")).split(",")
    return any(item.strip().lower() == "respond-async" for item in preferences)


def _unheard(_: Progress) -> None: ...


def _unasked() -> None: ...


def _digest(request: Request) -> str:
    body = hashlib.sha256(getattr(request, "_body", b"")).hexdigest()
    return digest_of(request.url.path, request.url.query, if_commit(request) or "", body)


async def begin(request: Request, graph: Served, order: Order) -> Response:
    """202 and the job, of a repeat that job again; 429 while there are too many.

    Raises:
        BranchNotFound: no such branch.
    """
    key = key_of(request)
    jobs = jobs_of(request)
    try:
        with ExitStack() as unless_begun:
            unless_begun.callback(order.held.close)
            record = await writing(lambda: jobs.begin(graph, order, key))
            unless_begun.pop_all()  # the job does it
    except TooManyJobs as crowd:
        return failure(
            429,
            str(crowd),
            code=ErrorCode.TOO_MANY_REQUESTS,
            request_id=request_id_of(request.scope),
            headers={"Retry-After": "1"},
        )
    where = f"{_prefix(request)}/jobs/{record.job_id}"
    headers = {"Location": where, "Preference-Applied": "respond-async"}
    return answer(record.to_json(), status=202, headers=headers)


def _prefix(request: Request) -> str:
    graph_id = request.scope.get("state", {}).get("graph_id")
    return "" if graph_id is None else f"/graphs/{graph_id}"


def jobs_of(request: Request) -> Jobs:
    """The jobs of the server that answers a request."""
    state = request.app.state
    if not hasattr(state, "jobs"):
        state.jobs = Jobs(spool_of(request))
    found: Jobs = state.jobs
    return found


class TooManyJobs(Exception):
    """No more can be begun until some have ended."""


class Jobs:
    """The jobs of one process, and those of others as far as they are told."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._crew = Crew(SERVER_JOBS.read())
        self._most, self._most_of_one = JOBS_MAX.read(), ACTOR_JOBS.read()
        self._lock = threading.Lock()
        self._taken: Counter[str | None] = Counter()
        self._running: dict[str, RunningJob] = {}
        self._books: dict[str, Omnigraph] = {}
        self._is_closed = False

    def begin(self, graph: Served, order: Order, key: str | None) -> JobRecord:
        """Register a run and start to work; returns at once.

        Under a key the run is named by the key and what was asked for. One that is under way or
        done is not begun again, wherever that was; one that came to nothing is.

        Raises:
            BranchNotFound: no such branch.
            StorageError: the server is about to stop, or the spool is full.
            TooManyJobs: there are.
        """
        if self._is_closed:
            raise StorageError("the server is about to stop and begins no jobs", retryable=True)
        actor = graph.graph.actor
        named = new_ulid() if key is None else digest_of(actor or "", key, order.digest)
        name = f"{JOB_PREFIX}{order.operation}:{named}"
        target = (order.target or order.branch or MAIN).strip()
        earlier = None if key is None else self._find_earlier(graph, target, name)
        if earlier is not None:
            order.held.close()
            return earlier
        self._admit(actor, order.held)
        if order.make_ready is not None:
            order.make_ready()
        run = self.books_of(graph).begin_run(target, operation_hash=name, actor=actor)
        claim = self._store(graph).try_claim(run.run_id)
        if claim is None or run.status is not RunStatus.RUNNING:
            # Another process was asked the same in this very moment.
            if claim is not None:
                claim.release()
            order.held.close()
            return job_of_run(run)
        return self._start(graph, run, order, claim)

    def _find_earlier(self, graph: Served, target: str, name: str) -> JobRecord | None:
        """The job of that name that is under way or done."""
        books, store = self.books_of(graph), self._store(graph)
        same = (run for run in books.list_runs(target_branch=target) if run.operation_hash == name)
        run = max(same, key=lambda run: run.created_at, default=None)
        if run is None or run.status not in (RunStatus.RUNNING, RunStatus.PUBLISHED):
            return None
        known = store.read(run.run_id)
        found = job_of_run(run) if known is None else self._settled(graph, store, known)
        if found.status in (JobStatus.RUNNING, JobStatus.DONE):
            return found
        with contextlib.suppress(ConflictError):  # it has ended by now
            books.fail_run(run.run_id)
        return None

    def _admit(self, actor: str | None, held: ExitStack) -> None:
        """Count a job until what it holds is given back."""
        with self._lock:
            if self._taken.total() >= self._most or self._taken[actor] >= self._most_of_one:
                raise TooManyJobs("too many jobs wait for their turn")
            self._taken[actor] += 1
        held.callback(self._dismiss, actor)

    def _dismiss(self, actor: str | None) -> None:
        with self._lock:
            self._taken[actor] -= 1

    def _start(self, graph: Served, run: RunRecord, order: Order, claim: Claim) -> JobRecord:
        books, store = self.books_of(graph), self._store(graph)
        job = RunningJob(
            _first(run, order, graph.graph.actor),
            store,
            claim,
            books,
            order.held,
            describe=lambda problem: graph.hiding.over(order.describe(problem)),
            is_staged=order.is_staged,
        )
        record = job.record
        try:
            store.write(record)
        except StorageError:
            job.give_up("the spool of the server does not take it")
            raise
        with self._lock:
            self._running[run.run_id] = job
        order.held.callback(self._running.pop, run.run_id, None)
        self._crew.take(job, lambda: order.work(run, books, job))
        return record

    def get(self, graph: Served, job_id: str) -> JobRecord:
        """
        Raises:
            NotFoundError: neither a job nor a run has that id.
        """
        store = self._store(graph)
        record = store.read(job_id)
        if record is None:
            return job_of_run(self.books_of(graph).get_run(job_id))
        return self._settled(graph, store, record)

    def list(
        self,
        graph: Served,
        is_wanted: Callable[[JobRecord], bool],
        limit: int,
        seen: str | None = None,
    ) -> tuple[JobRecord, ...]:
        """The newest of the last day in brief, or those before one that was seen."""
        store = self._store(graph)
        found = (self._settled(graph, store, record) for record in store.list_brief(seen))
        wanted = (record.in_brief() for record in found if is_wanted(record))
        return tuple(itertools.islice(wanted, limit))

    def cancel(self, graph: Served, job_id: str) -> JobRecord:
        """Stop a job, and wait a moment for that. It may still be running when this returns.

        Raises:
            NotFoundError: no job has that id.
            ConflictError: it has ended, or cannot be stopped any more.
        """
        record = self.get(graph, job_id)
        store = self._store(graph)
        if record.status is not JobStatus.RUNNING:
            raise ConflictError(f"the job {job_id} cannot be cancelled: it is {record.status}")
        if record.has_begun and not record.is_stoppable:
            raise _unstoppable(record)
        store.ask_to_stop(job_id)
        waited = time.monotonic() + _PATIENCE
        while record.status is JobStatus.RUNNING and time.monotonic() < waited:
            time.sleep(_GLANCE)
            record = self.get(graph, job_id)
        if record.status is JobStatus.RUNNING and not record.is_stoppable:
            store.take_back(job_id)  # it began in the very moment
            raise _unstoppable(record)
        return record

    def close(self, timeout: float) -> None:
        """Begin no more, wait for those that run, and fail those that take longer."""
        self._is_closed = True
        deadline = time.monotonic() + timeout
        while self._running and time.monotonic() < deadline:
            time.sleep(_GLANCE)
        with self._lock:
            left = tuple(self._running.values())
        for job in left:
            job.give_up("the server was stopped before it had ended")
        for books in self._books.values():
            books.close()

    def _settled(self, graph: Served, store: JobStore, record: JobRecord) -> JobRecord:
        """The job; one whose process is gone has failed."""
        if record.status is not JobStatus.RUNNING:
            return record
        if (here := self._running.get(record.job_id)) is not None:
            return here.record
        claim = store.try_claim(record.job_id)
        if claim is None:
            return record  # another process works on it
        newest = store.read(record.job_id) or record
        if newest.status is not JobStatus.RUNNING:
            claim.release()
            return newest
        left = RunningJob(newest, store, claim, self.books_of(graph), ExitStack())
        left.give_up("the process of the server that worked on it has ended")
        return left.record

    def _store(self, graph: Served) -> JobStore:
        return JobStore(self._spool, graph.graph.uri)

    def books_of(self, graph: Served) -> Omnigraph:
        """A handle that keeps the records of runs: what is recorded is not the actor's doing."""
        uri = graph.graph.uri
        with self._lock:
            if uri not in self._books:
                self._books[uri] = Omnigraph.open(uri)
            return self._books[uri]


def _first(run: RunRecord, order: Order, actor: str | None) -> JobRecord:
    now = now_us()
    return JobRecord(
        job_id=run.run_id,
        operation=order.operation,
        status=JobStatus.RUNNING,
        branch=order.branch,
        actor_id=actor,
        created_at=now,
        updated_at=now,
        progress={} if order.size is None else {"bytes": order.size},
        is_stoppable=order.is_stoppable,
    )


def _unstoppable(record: JobRecord) -> ConflictError:
    return ConflictError(
        f"the job {record.job_id} cannot be cancelled: `{record.operation}` has begun and is "
        "finished or undone as a whole",
        hint="wait for it to end; what it did can be taken back then",
    )
