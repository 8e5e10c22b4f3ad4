"""Time travel: a commit, a version or a moment comes in, the state of a branch then goes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError, SnapshotNotFound
from omnigraph_core.history import refs
from omnigraph_core.manifest.catalog import Catalog, load_version
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.layout import branch_manifest_path

if TYPE_CHECKING:
    from omnigraph_core.history.commits import CommitGraph
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.storage.session import Store


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """What to read: the head of a branch, the state a commit made, or a tag. Exactly one."""

    branch: str | None = None
    snapshot_id: str | None = None
    tag: str | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.branch, self.snapshot_id, self.tag) if value is not None]
        if len(given) != 1:
            raise ConfigError("give exactly one of branch, snapshot id and tag to read from")


def state_at(store: Store, branch: str, incarnation: str, version: int) -> CatalogState:
    """A branch at a version, whatever became of the branch since.

    Raises:
        SnapshotNotFound: that version never was, or cleanup has removed it.
    """
    is_main = incarnation == refs.MAIN_REF.incarnation
    path = refs.MAIN_REF.manifest if is_main else branch_manifest_path(incarnation)
    return load_version(Catalog(store, branch, incarnation, path), version)


def state_at_commit(store: Store, commit: GraphCommit) -> CatalogState:
    """The state a commit made.

    Raises:
        SnapshotNotFound: cleanup has removed that version.
    """
    branch = commit.manifest_branch or MAIN
    return state_at(store, branch, commit.incarnation, commit.manifest_version)


def commit_at_time(
    graph: CommitGraph, ref: BranchRef, state: CatalogState, moment: datetime
) -> GraphCommit:
    """The newest commit of a branch's lineage that was there at a moment; no zone means UTC.

    Raises:
        SnapshotNotFound: the graph is younger.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    microseconds = round(moment.timestamp() * 1_000_000)
    for commit in graph.lineage(ref, state):
        if commit.created_at <= microseconds:
            return commit
    raise SnapshotNotFound(
        f"`{ref.branch}` has no commit as old as {moment.isoformat()}",
        hint="`list_commits` shows the moments of all commits",
    )
