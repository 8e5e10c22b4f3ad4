"""The commit log: a projection of the catalogs that lists the commits of all branches.

Commits go in once each, whoever records them and how often; they come out in the order they were
recorded. `actor_id` is a column here too, so the log alone is complete: `_graph_commit_actors` only
repeats it, and a crash between the two appends loses nothing.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.failpoints import declare
from omnigraph_core.history.actors import project_actors
from omnigraph_core.history.appends import append_chosen, present, without
from omnigraph_core.manifest.image import GraphCommit
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS
from omnigraph_core.storage.log import open_log, read, read_from, refresh

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        self._commits: dict[str, GraphCommit] = {}
        self._position = 0

    def record(self, commits: Sequence[GraphCommit]) -> None:
        """Append those commits that are not in the log.

        Raises:
            PublishContention: other writers were first every time; nothing was written.
            StorageError: the store failed; recording the same again is safe.
        """
        if not commits:
            return
        given = _encode(tuple({commit.graph_commit_id: commit for commit in commits}.values()))

        def unrecorded(log: Log) -> tuple[pa.Table, None]:
            rows = without(given, _ID, present(log, _ID, given[_ID].to_pylist()))
            if rows.num_rows:
                _BEFORE.hit()
            return rows, None

        log, _ = append_chosen(self._store, GRAPH_COMMITS, COMMITS_SCHEMA, unrecorded)
        _AFTER.hit()
        project_actors(log, GRAPH_COMMIT_ACTORS, _ID, given)

    def known_version(self, incarnation: str) -> int:
        """The newest recorded version of a catalog, 0 if none is."""
        return max(self.versions_of(incarnation), default=0)

    def versions_of(self, incarnation: str) -> tuple[int, ...]:
        """All recorded versions of a catalog, ascending. Reads two columns, not the log."""
        log = self._newest()
        if log is None:
            return ()
        own = pc.field("incarnation") == incarnation
        return tuple(sorted(read(log, ["manifest_version"], where=own)[0].to_pylist()))

    def commits(self) -> tuple[GraphCommit, ...]:
        """Every recorded commit, in the order of recording."""
        self._catch_up()
        return tuple(self._commits.values())

    def table(self) -> pa.Table:
        """Every recorded commit as Arrow, in the order of recording."""
        log = self._newest()
        return COMMITS_SCHEMA.empty_table() if log is None else read(log)

    def find(self, commit_id: str) -> GraphCommit | None:
        """The commit of that id; one found before is found again without any request."""
        if commit_id not in self._commits:
            self._catch_up()
        return self._commits.get(commit_id)

    def _newest(self) -> Log | None:
        known = self._log
        log = refresh(known) if known else open_log(self._store, GRAPH_COMMITS)
        self._log = log
        return log

    def _catch_up(self) -> None:
        with self._lock:
            log = self._newest()
            if log is None:
                return
            # Rows keep their place: what follows those read before is new.
            arrived = read_from(log, self._position)
            found = {commit.graph_commit_id: commit for commit in _decode(arrived)}
            self._commits = {**self._commits, **found} if found else self._commits
            self._position += arrived.num_rows


def _encode(commits: Sequence[GraphCommit]) -> pa.Table:
    columns = {name: [getattr(commit, name) for commit in commits] for name in COMMITS_SCHEMA.names}
    return pa.table(columns, schema=COMMITS_SCHEMA)


def _decode(rows: pa.Table) -> list[GraphCommit]:
    columns: dict[str, list[Any]] = {}
    for field in fields(GraphCommit):
        column = rows[field.name]
        whole = column.cast(pa.int64()) if field.name == "created_at" else column
        values = whole.to_pylist()
        columns[field.name] = _shared(values) if field.name in _REPEATED else values
    return [GraphCommit(*values) for values in zip(*columns.values(), strict=True)]


def _shared(values: list[str | None]) -> list[str | None]:
    return [None if value is None else sys.intern(value) for value in values]
