"""The logs beside the catalogs: the log of commits says what the catalogs say, runs can be read.

A log may lag behind; it must not contradict, nor know commits that a catalog has lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.verifying.model import Code, Finding, Part, error, unreadable
from omnigraph_core.errors import StorageError
from omnigraph_core.history.log import CommitLog
from omnigraph_core.history.runs import RunRegistry
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS, GRAPH_RUNS
from omnigraph_core.storage.image import list_versions
from omnigraph_core.storage.log import open_log, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.engine.verifying.catalogs import Seen
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.storage.session import Store

_ANEW = "remove the directory: it is made again from the catalogs"


def check_logs(store: Store, seen: Sequence[Seen]) -> Part:
    """Compare the log of commits with these catalog versions, and read the others."""
    findings: list[Finding] = []
    try:
        log = CommitLog(store)
        known = {commit.graph_commit_id: commit for commit in log.commits()}
        findings += _check_commits(store, seen, known)
    except StorageError as problem:
        findings.append(unreadable(Code.LOG_DAMAGED, GRAPH_COMMITS, problem))
    try:
        actors = open_log(store, GRAPH_COMMIT_ACTORS)
        if actors is not None:
            read(actors)
    except StorageError as problem:
        findings.append(error(Code.LOG_DAMAGED, GRAPH_COMMIT_ACTORS, problem.message, _ANEW))
    try:
        RunRegistry(store).list()
    except StorageError as problem:
        findings.append(unreadable(Code.LOG_DAMAGED, GRAPH_RUNS, problem))
    return Part(tuple(findings))


def _check_commits(
    store: Store, seen: Sequence[Seen], known: dict[str, GraphCommit]
) -> Iterator[Finding]:
    by_version = {(item.incarnation, item.manifest_version): item for item in known.values()}
    newest: dict[str, int] = {}
    for incarnation, version in by_version:
        newest[incarnation] = max(version, newest.get(incarnation, 0))
    told: set[str] = set()
    for item in seen:
        for commit in item.snapshot.image.commits:
            id = commit.graph_commit_id
            problem = _compared(commit, known.get(id), by_version, newest)
            if problem is not None and id not in told:
                told.add(id)
                yield error(Code.LOG_DISAGREES, item.place, problem, _ANEW)
        if item.is_head:
            yield from _check_lost(store, item, newest)


def _compared(
    commit: GraphCommit,
    recorded: GraphCommit | None,
    by_version: dict[tuple[str, int], GraphCommit],
    newest: dict[str, int],
) -> str | None:
    id, version = commit.graph_commit_id, commit.manifest_version
    if recorded is not None:
        return None if recorded == commit else f"the log has another commit {id} than the catalog"
    other = by_version.get((commit.incarnation, version))
    if other is not None:
        return f"version {version} is {id}, the log has {other.graph_commit_id}"
    if newest.get(commit.incarnation, 0) > version:
        return f"the log lacks commit {id}, and has later ones"
    return None


def _check_lost(store: Store, head: Seen, newest: dict[str, int]) -> Iterator[Finding]:
    recorded = newest.get(head.ref.incarnation, 0)
    if recorded <= head.snapshot.manifest_version:
        return
    # It may have been published and recorded since the head was read.
    there = max(list_versions(store, head.ref.manifest), default=0)
    if recorded > there > 0:
        message = f"the log knows version {recorded}, the newest of the catalog is {there}"
        hint = "the catalog has lost commits: restore it from a newer copy of the graph"
        yield error(Code.LOG_DISAGREES, head.place, message, hint)
