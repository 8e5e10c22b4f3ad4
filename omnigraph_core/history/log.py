"""The commit log: a projection of the catalogs that lists the commits of all branches.

Commits go in once each, whoever records them and how often; they come out in the order they were
recorded. `actor_id` is a column here too, so the log alone is complete: `_graph_commit_actors` only
repeats it, and a crash between the two appends loses nothing.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph_core.errors import ObjectNotFound, StorageError
from omnigraph_core.failpoints import declare
from omnigraph_core.history.actors import project_actors
from omnigraph_core.history.appends import append_chosen
from omnigraph_core.manifest.image import GraphCommit
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS
from omnigraph_core.storage.log import open_log, read_from, refresh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.storage.log import Log
    from omnigraph_core.storage.session import Store

_BEFORE: Final = declare("log.before_append", "commits are published, the log lacks them")
_AFTER: Final = declare("log.after_append", "commits are in the log, their actors not in the map")

_ID: Final = "graph_commit_id"

COMMITS_SCHEMA: Final = pa.schema(
    [
        pa.field(_ID, pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
        pa.field("incarnation", pa.string(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("actor_id", pa.string()),
        pa.field("idempotency_key", pa.string()),
        pa.field("request_digest", pa.string()),
        pa.field("summary", pa.string()),
    ]
)

_REPEATED: Final = ("manifest_branch", "incarnation", "operation", "actor_id")
"""Columns with few values: each value is kept in memory once."""


class CommitLog:
    """The log of one graph. What was read once is kept, and only what was appended since is read.

    Safe to share between threads and processes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._log: Log | None = None
        self._known = _Known()

    def record(self, commits: Sequence[GraphCommit]) -> None:
        """Append those commits that are not in the log.

        Raises:
            PublishContention: other writers were first every time; nothing was written.
            StorageError: the store failed; recording the same again is safe.
        """
        if not commits:
            return
        given = {commit.graph_commit_id: commit for commit in commits}

        def unrecorded(log: Log) -> tuple[pa.Table, None]:
            known = self._read_up_to(log).commits
            lacking = [commit for id, commit in given.items() if id not in known]
            if lacking:
                _BEFORE.hit()
            return _encode(lacking), None

        log, _ = append_chosen(self._store, GRAPH_COMMITS, COMMITS_SCHEMA, unrecorded)
        _AFTER.hit()
        expected = self._read_up_to(log).named
        arrived = _encode(tuple(given.values()))
        project_actors(log, GRAPH_COMMIT_ACTORS, _ID, arrived, expected=expected)

    def known_version(self, incarnation: str) -> int:
        """The newest recorded version of a catalog, 0 if none is."""
        return self._newest().versions.get(incarnation, 0)

    def commits(self) -> tuple[GraphCommit, ...]:
        """Every recorded commit, in the order of recording."""
        return tuple(self._newest().commits.values())

    def find(self, commit_id: str) -> GraphCommit | None:
        """The commit of that id; one found before is found again without any request."""
        return self._known.commits.get(commit_id) or self._newest().commits.get(commit_id)

    def find_keyed(
        self, incarnation: str, idempotency_key: str, *, up_to: int
    ) -> tuple[GraphCommit | None, bool]:
        """The commit of a catalog with that key, and whether all up to a version were looked at.

        No request is made when what is known reaches that far.
        """
        known = self._known
        if known.versions.get(incarnation, 0) < up_to:
            known = self._newest()
        is_complete = known.versions.get(incarnation, 0) >= up_to
        return known.keyed.get((incarnation, idempotency_key)), is_complete

    def _newest(self) -> _Known:
        try:
            log = refresh(self._log) if self._log else open_log(self._store, GRAPH_COMMITS)
        except ObjectNotFound:  # the log was removed; it is a projection and begins anew
            log = open_log(self._store, GRAPH_COMMITS)
        with self._lock:
            if self._log and (log is None or log.version < self._log.version):
                self._log, self._known = None, _Known()
        return self._known if log is None else self._read_up_to(log)

    def _read_up_to(self, log: Log) -> _Known:
        """What the log says at a version, or at a newer one that is known."""
        with self._lock:
            if self._log is None or self._log.version < log.version:
                # Rows keep their place: what follows those read before is new.
                _check_schema(log)
                arrived = read_from(log, self._known.position)
                self._known = self._known.extended(_decode(arrived))
                self._log = log
            return self._known


@dataclass(frozen=True, slots=True)
class _Known:
    """The log in memory, up to a position. Never changed: readers hold one while others go on.

    Except `keyed`, which all share and which only grows: it is asked for single keys alone, and one
    that is there too early does no harm.
    """

    commits: Mapping[str, GraphCommit] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    keyed: dict[tuple[str, str], GraphCommit] = field(default_factory=dict)
    position: int = 0
    named: int = 0

    def extended(self, arrived: Sequence[GraphCommit]) -> _Known:
        versions = dict(self.versions)
        for commit in arrived:
            newest = versions.get(commit.incarnation, 0)
            versions[commit.incarnation] = max(newest, commit.manifest_version)
            if commit.idempotency_key is not None:
                self.keyed[commit.incarnation, commit.idempotency_key] = commit
        return _Known(
            {**self.commits, **{commit.graph_commit_id: commit for commit in arrived}},
            versions,
            self.keyed,
            self.position + len(arrived),
            self.named + sum(commit.actor_id is not None for commit in arrived),
        )


def _check_schema(log: Log) -> None:
    if not log.schema.equals(COMMITS_SCHEMA):
        raise StorageError(
            f"the commit log at {log.uri} is damaged: its columns are {log.schema.names}",
            hint="remove the directory: it is made again from the catalogs",
        )


def _encode(commits: Sequence[GraphCommit]) -> pa.Table:
    columns = {name: [getattr(commit, name) for commit in commits] for name in COMMITS_SCHEMA.names}
    return pa.table(columns, schema=COMMITS_SCHEMA)


def _decode(rows: pa.Table) -> list[GraphCommit]:
    columns: dict[str, list[Any]] = {}
    for name in (item.name for item in fields(GraphCommit)):
        column = rows[name]
        whole = column.cast(pa.int64()) if name == "created_at" else column
        values = whole.to_pylist()
        columns[name] = _shared(values) if name in _REPEATED else values
    return [GraphCommit(*values) for values in zip(*columns.values(), strict=True)]


def _shared(values: list[str | None]) -> list[str | None]:
    return [None if value is None else sys.intern(value) for value in values]
