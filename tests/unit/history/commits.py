"""Commits for tests of the history: only what a test is about has to be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.manifest.image import GraphCommit

if TYPE_CHECKING:
    from collections.abc import Iterable


def make_commit(
    commit_id: str,
    *parents: str,
    version: int = 1,
    at: int = 0,
    incarnation: str = "main",
    actor: str | None = None,
    key: str | None = None,
) -> GraphCommit:
    return GraphCommit(
        graph_commit_id=commit_id,
        manifest_branch=None if incarnation == "main" else "review",
        incarnation=incarnation,
        manifest_version=version,
        parent_commit_id=parents[0] if parents else None,
        merged_parent_commit_id=parents[1] if len(parents) > 1 else None,
        actor_id=actor,
        created_at=at,
        operation="load",
        idempotency_key=key,
        request_digest=None if key is None else f"digest of {key}",
        summary=None if key is None else "{}",
    )


class CountingLookup:
    """A lookup that counts how often each commit is asked for."""

    def __init__(self, commits: Iterable[GraphCommit]) -> None:
        self._commits = {commit.graph_commit_id: commit for commit in commits}
        self.visits: dict[str, int] = {}

    def __call__(self, commit_id: str) -> GraphCommit | None:
        self.visits[commit_id] = self.visits.get(commit_id, 0) + 1
        return self._commits.get(commit_id)
