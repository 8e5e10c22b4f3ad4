"""The reading half of a graph behind a server: queries, their plans, the indexes they use.

Rows arrive as Arrow, in the batches the server sends, and become the result that a graph at hand
gives. Some values are made by modules that load the storage: those are imported where needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.branches import Branches
from omnigraph_core.client.decode.commits import NamedCommit, NamedSnapshot
from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.jobs import Jobs
from omnigraph_core.client.places import check_version, place_of, refuse_actor, refuse_engine
from omnigraph_core.client.requests import ARROW, ask, get, write
from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.guard import check_limits
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.client.requests import Call
    from omnigraph_core.engine.indexing import IndexReport
    from omnigraph_core.exec.guard import Cancellation
    from omnigraph_core.exec.result import QueryResult
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.job_report import SparkResults
    from omnigraph_core.plan.report import PlanReport

_LOCAL = "local"
_PATIENCE = 10.0
"""Seconds beyond the time a query may take that its answer may need."""


class Reads(Branches, Jobs):
    """What answers questions about a graph and changes none of its rows."""

    def query(
        self,
        target: str | ReadTarget | Snapshot,
        source: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
        max_age: float | None = None,
        engine: str = _LOCAL,
    ) -> QueryResult:
        """Run a read on one snapshot, whatever others commit meanwhile; see `Omnigraph.query`.

        Args:
            max_age: seconds the server may rely on the newest commit it knows of a branch.
            engine: always `local`, which is the server.
        """
        _refuse_engine(engine)
        check_limits(timeout, memory, max_age)
        given = {"timeout": timeout, "memory": memory, "max_age": max_age}
        call = ask("/query", query=source, name=name, params=params, **place_of(target), **given)
        return self._rows(call, timeout, cancellation, target)

    def run_query_at(
        self,
        version: int,
        source: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str = MAIN,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
        engine: str = _LOCAL,
    ) -> QueryResult:
        """Run a read on a branch as it was at one of its manifest versions."""
        _refuse_engine(engine)
        check_limits(timeout, memory)
        at = {"branch": branch, "version": check_version(version, branch)}
        given = {"timeout": timeout, "memory": memory, **at}
        call = ask("/query", query=source, name=name, params=params, **given)
        return self._rows(call, timeout, cancellation, None)

    def explain(
        self,
        target: str | ReadTarget | Snapshot,
        source: str,
        name: str | None = None,
        *,
        engine: str = _LOCAL,
    ) -> PlanReport:
        """How a read would be carried out. Runs nothing."""
        _refuse_engine(engine)
        return self._plan(ask("/explain", query=source, name=name, **place_of(target)))

    def profile(
        self,
        target: str | ReadTarget | Snapshot,
        source: str,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> PlanReport:
        """Run a read and tell the rows and seconds of each step beside what was expected."""
        check_limits(timeout, memory)
        given: dict[str, object] = {"timeout": timeout, "memory": memory, "profile": True}
        call = ask("/explain", query=source, name=name, params=params, **place_of(target), **given)
        return self._plan(_patient(call, timeout), cancellation)

    def ensure_indices(
        self, *, branch: str = MAIN, engine: str = "auto", actor: str | None = None
    ) -> SparkResults[IndexReport]:
        """Build what is missing of every index the schema asks for, with at most one commit."""
        from omnigraph_core.client.decode.upkeep import decode_built

        refuse_actor(actor)
        refuse_engine(engine)
        return understood(decode_built, self._worked(write("POST", "/indexes", {"branch": branch})))

    def index_status(self, target: str | ReadTarget | Snapshot = MAIN) -> tuple[IndexReport, ...]:
        """How much every index the schema asks for covers."""
        from omnigraph_core.client.decode.upkeep import decode_indexes

        call = get("/indexes", **place_of(target))
        return understood(decode_indexes, self._http.fetch(call))

    def _rows(
        self,
        call: Call,
        timeout: float | None,
        cancellation: Cancellation | None,
        target: str | ReadTarget | Snapshot | None,
    ) -> QueryResult:
        from omnigraph_core.client.decode.rows import read_rows
        from omnigraph_core.exec.result import QueryResult

        asked = _patient(call.accepting(ARROW), timeout)
        found = self._http.run_until(asked, read_rows, cancellation)
        snapshot = target if isinstance(target, Snapshot) else self._read_from(found.place)
        return QueryResult(found.query_name, found.columns, found.table, snapshot)

    def _read_from(self, place: tuple[str, int, str]) -> Snapshot:
        branch, version, commit_id = place
        commit = NamedCommit(commit_id, self.get_commit)
        return NamedSnapshot(
            branch, version, commit, lambda name, at: self.snapshot_at_version(at, branch=name)
        )

    def _plan(self, call: Call, cancellation: Cancellation | None = None) -> PlanReport:
        from omnigraph_core.client.decode.plans import decode_plan
        from omnigraph_core.client.transport import read_document

        found = self._http.run_until(call, read_document, cancellation)
        return understood(decode_plan, found.document)


def _refuse_engine(engine: str) -> None:
    """
    Raises:
        ConfigError: another engine is asked for than that of the server.
    """
    if engine != _LOCAL:
        raise ConfigError(
            f"`engine` is {engine!r}, and the server runs queries itself",
            hint="open the graph where it is kept to run them elsewhere",
        )


def _patient(call: Call, timeout: float | None) -> Call:
    """The server stops a query in time, and tells so; the connection waits a little longer."""
    return call if timeout is None else call.waiting(timeout + _PATIENCE)
