"""The logs beside the catalogs: the log of commits says what the catalogs say, runs can be read.

A log may lag behind; it must not contradict, nor know commits that a catalog has lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.verifying.model import Code, Finding, Part, Severity, error, unreadable
from omnigraph_core.errors import StorageError
from omnigraph_core.history.log import CommitLog
from omnigraph_core.history.runs import RunRegistry
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS, GRAPH_RUNS
from omnigraph_core.storage.image import list_versions
from omnigraph_core.storage.log import open_log, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.engine.verifying.catalogs import Seen
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.storage.session import Store

_ANEW = "remove the directory: it is made again from the catalogs"


def check_logs(store: Store, seen: Sequence[Seen]) -> Part:
    """Compare the log of commits with these versions of branches, and read the others."""
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
    store: Store, seen: Sequence[Seen], known: Mapping[str, GraphCommit]
) -> Iterator[Finding]:
    by_version = {(item.incarnation, item.manifest_version): item for item in known.values()}
    newest: dict[str, int] = {}
    for incarnation, version in by_version:
        newest[incarnation] = max(version, newest.get(incarnation, 0))
    told: set[str] = set()
    for item in seen:
        for commit in item.snapshot.image.commits:
            if commit.graph_commit_id in told:
                continue
            found = _compared(commit, item, known, by_version, newest)
            if found is not None:
                told.add(commit.graph_commit_id)
                yield found
        if item.is_head:
            yield from _check_lost(store, item, newest)


def _compared(
    commit: GraphCommit,
    seen: Seen,
    known: Mapping[str, GraphCommit],
    by_version: Mapping[tuple[str, int], GraphCommit],
    newest: Mapping[str, int],
) -> Finding | None:
    id, version = commit.graph_commit_id, commit.manifest_version
    recorded = known.get(id)
    if recorded == commit:
        return None
    if recorded is not None:
        problem = f"the log has another commit {id} than the catalog"
        return error(Code.LOG_DISAGREES, seen.place, problem, _ANEW)
    other = by_version.get((commit.incarnation, version))
    if other is not None:
        problem = f"version {version} is {id}, the log has {other.graph_commit_id}"
        return error(Code.LOG_DISAGREES, seen.place, problem, _ANEW)
    if newest.get(commit.incarnation, 0) <= version:
        return None  # still to be recorded
    # A log made again cannot know what was trimmed between old versions that tags or forks keep.
    is_recent = seen.is_head and commit.incarnation == seen.ref.incarnation
    severity = Severity.ERROR if is_recent else Severity.WARNING
    problem = f"the log lacks commit {id}, and has later ones"
    return Finding(severity, Code.LOG_DISAGREES, seen.place, problem, _ANEW)


def _check_lost(store: Store, head: Seen, newest: Mapping[str, int]) -> Iterator[Finding]:
    recorded = newest.get(head.ref.incarnation, 0)
    if recorded <= head.snapshot.manifest_version:
        return
    # It may have been published and recorded since the head was read.
    there = max(list_versions(store, head.ref.manifest), default=0)
    if recorded > there > 0:
        message = f"the log knows version {recorded}, the newest of the catalog is {there}"
        hint = "the catalog has lost commits: restore it from a newer copy of the graph"
        yield error(Code.LOG_DISAGREES, head.place, message, hint)
