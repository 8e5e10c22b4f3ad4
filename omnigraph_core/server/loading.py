"""Loads over HTTP: data that is at hand comes in, the answer or a job goes out.

As a job the rows go to the branch of a run and are published from there: what conflicts with others
stays on that branch and can be published with choices. A load that names the head it expects, or
writes nothing, needs no branch of its own; and one under a key goes where the graph remembers the
key, so that it is loaded once however it is asked for.
"""

from __future__ import annotations

import contextlib
import json
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.errors import AlreadyExists, BranchNotFound, ConfigError, DataError
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server import jobs
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import request_id_of, status_of, told_document
from omnigraph_core.server.hiding import renamed
from omnigraph_core.server.idempotency import once, own_key
from omnigraph_core.server.spool import digest_of, spool_of
from omnigraph_core.server.threads import writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.errors import OmnigraphError
    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.server.job_work import RunningJob
    from omnigraph_core.write.load_model import LoadResult
    from omnigraph_core.write.progress import Listener
    from omnigraph_core.write.sources import Given

_TELLING: Final = (
    "branch", "source", "mode", "format", "type", "embed", "is_dry_run", "is_skipping_bad",
    "wants_rejects", "if_commit", "digest",
)  # fmt: skip
"""Members of an order that change what comes of it."""
_MOST_REJECTS: Final = 16 * 2**20
"""Bytes of rejected records that an answer carries."""


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """What to load, and how. `source` is the branch that a missing one is forked from."""

    data: Given
    branch: str = MAIN
    source: str | None = None
    mode: str = "merge"
    format: str | None = None
    type: str | None = None
    embed: str = "now"
    is_dry_run: bool = False
    is_skipping_bad: bool = False
    wants_rejects: bool = False
    if_commit: str | None = None
    key: str | None = None
    digest: str | None = None
    """Of the data, for a job under a key."""
    size: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """What to call files of the spool when they are spoken of."""

    @property
    def is_direct(self) -> bool:
        """Whether the load goes to its branch even as a job."""
        return self.is_dry_run or self.if_commit is not None or self.key is not None


async def respond(
    request: Request, graph: Served, order: LoadOrder, held: ExitStack | None = None
) -> Response:
    """Load, and answer as `/ingest` does; with `Prefer: respond-async` as a job.

    Args:
        held: closed when the data is needed no more, however this ends.
    """
    held = held or ExitStack()
    try:
        load = _Load(graph, order, _rejects_file(request, order, held))
        if jobs.is_wanted(request):
            return await once(
                request,
                graph,
                lambda: jobs.begin(request, graph, load.job(request, held.pop_all())),
                digest=load.digest(request),
            )
        try:
            return answer(await writing(load.now))
        except (DataError, ConfigError) as problem:
            told = graph.hiding.over(load.told(problem))
            document = {**told, "request_id": request_id_of(request.scope)}
            return answer(document, status=status_of(problem))
    finally:
        held.close()


def _rejects_file(request: Request, order: LoadOrder, held: ExitStack) -> Path | None:
    if not order.wants_rejects:
        return None
    return held.enter_context(spool_of(request).directory()) / "rejects"


@dataclass(frozen=True, slots=True)
class _Load:
    graph: Served
    order: LoadOrder
    rejects: Path | None
    made: threading.Event = field(default_factory=threading.Event)
    """Set when the branch was missing and was made before the load."""

    def now(self, progress: Listener | None = None) -> dict[str, object]:
        """The load itself, by the rights of the actor."""
        with own_key(self.graph, self.order.key) as key:
            options = {
                **self._options(progress),
                "if_commit": self.order.if_commit,
                "idempotency_key": key,
            }
            return self._loaded(options)

    def _loaded(self, options: dict[str, Any]) -> dict[str, object]:
        order, graph = self.order, self.graph.graph
        if order.source is None:
            loaded = graph.load(order.data, branch=order.branch, **options)
            return self._document(loaded, loaded.commit, is_created=False)
        done = graph.ingest(order.data, branch=order.branch, source=order.source, **options)
        is_created = done.branch_created or self.made.is_set()
        return self._document(done.loaded, done.loaded.commit, is_created=is_created)

    def make_ready(self, books: Omnigraph) -> None:
        """Refuse what the actor may not do, and make a branch that is missing.

        Raises:
            PolicyDenied: the actor may not.
            BranchNotFound: there is no such branch, or none to fork it from.
        """
        order = self.order
        rights = self.graph.graph.rights
        rights.demand(Action.CHANGE, branch=order.branch)
        if order.source is None or order.is_dry_run:
            return
        try:
            books.branch_get(order.branch)  # whoever may write there need not be one who may read
        except BranchNotFound:
            with contextlib.suppress(AlreadyExists):  # another load was quicker
                self.graph.graph.branch_create(order.branch, source=order.source)
                self.made.set()

    def digest(self, request: Request) -> str:
        """What tells this load from another one: everything but how the answer is wanted."""
        told = (*(getattr(self.order, name) for name in _TELLING), request.url.path)
        return digest_of(*(json.dumps(item) for item in told))

    def job(self, request: Request, held: ExitStack) -> jobs.Order:
        order = self.order
        books = jobs.jobs_of(request).books_of
        return jobs.Order(
            "load",
            self._directly if order.is_direct else self._staged,
            self.digest(request),
            branch=order.branch,
            is_staged=not order.is_direct,
            is_stoppable=True,
            held=held,
            size=order.size,
            target=(order.source or order.branch) if order.is_dry_run else None,
            describe=self.told,
            make_ready=lambda: self.make_ready(books(self.graph)),
        )

    def _directly(self, _run: RunRecord, _books: Omnigraph, job: RunningJob) -> object:
        return self.now(job.hear)

    def _staged(self, run: RunRecord, books: Omnigraph, job: RunningJob) -> object:
        """Load into the branch of a run, and publish that."""
        order, actor = self.order, self.graph.graph.actor
        # Once more: a job waits for its turn, and the policy may be another one by now.
        self.graph.graph.rights.demand(Action.CHANGE, branch=order.branch)
        options = self._options(job.hear)
        with job_facts(run=run.run_id, branch=order.branch):
            loaded = books.load(order.data, branch=run.run_branch, actor=actor, **options)
        job.check(is_pressing=True)
        published = books.publish_run(run.run_id, actor=actor).published_snapshot_id
        commit = None if loaded.commit is None else books.get_commit(published or "")
        return self._document(loaded, commit, is_created=self.made.is_set())

    def _options(self, progress: Listener | None) -> dict[str, Any]:
        order = self.order
        return {
            "mode": order.mode,
            "format": order.format,
            "type": order.type,
            "embed": order.embed,
            "dry_run": order.is_dry_run,
            "skip_bad": order.is_skipping_bad,
            "rejects": self.rejects,
            "progress": progress,
        }

    def _document(
        self, loaded: LoadResult, commit: GraphCommit | None, *, is_created: bool
    ) -> dict[str, object]:
        order = self.order
        document: dict[str, object] = {
            "uri": self.graph.uri,
            **loaded.to_json(),
            "branch": order.branch,
            "base_branch": order.source,
            "branch_created": is_created,
            "tables": [table.to_json() for table in loaded.tables],
            "actor_id": self.graph.graph.actor,
            "commit_id": None if commit is None else commit.graph_commit_id,
            "manifest_version": None if commit is None else commit.manifest_version,
            "commit": None if commit is None else commit.to_json(),
        }
        return {**document, **self._rejected()}

    def told(self, problem: OmnigraphError) -> dict[str, Any]:
        """An error with the records that were rejected, and files called as the client does."""
        document = told_document(problem)
        rejected = self._rejected()
        if rejected and isinstance(problem, DataError):
            document["details"] = {**document.get("details", {}), **rejected}
        named: dict[str, Any] = renamed(document, self.order.names)
        return named

    def _rejected(self) -> dict[str, object]:
        if self.rejects is None or not self.rejects.exists():
            return {}
        with self.rejects.open("rb") as file:
            data = file.read(_MOST_REJECTS)
            is_whole = not file.read(1)
        if not is_whole:
            data = data[: data.rfind(b"\n") + 1]
        text = renamed(data.decode(), self.order.names)
        return {"rejects": text} if is_whole else {"rejects": text, "rejects_complete": False}
