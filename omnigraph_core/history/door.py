"""The one write door: everything that changes a branch ends here.

Publishing decides; what follows only tells others. The commit log is a projection that the next
flush, or any reader of it, completes: failing to append to it never fails a commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.constants import LOG_FLUSH_INTERVAL
from omnigraph_core.errors import CommitOutcomeUnknown, ConflictError, StorageError
from omnigraph_core.history.branches import catalog_of, check_still_there
from omnigraph_core.manifest.publisher import publish

if TYPE_CHECKING:
    from omnigraph_core.history.commits import CommitGraph
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.publisher import CommitDraft


def commit(
    graph: CommitGraph, ref: BranchRef, draft: CommitDraft, *, base: CatalogState | None = None
) -> CatalogState:
    """Publish a draft on a branch.

    Raises:
        ConflictError: a requirement does not hold, or others were first every time.
        BranchNotFound: the branch was deleted; the commit is on no branch.
        CommitOutcomeUnknown: the store stopped answering; the commit may have landed.
    """
    state = publish(catalog_of(graph.store, ref), draft, base=base)
    if draft.is_check_only:
        return state
    _confirm(graph, ref, state)
    if state.snapshot.manifest_version % LOG_FLUSH_INTERVAL.value == 0:
        _flush(graph, ref, state)
    return state


def _confirm(graph: CommitGraph, ref: BranchRef, state: CatalogState) -> None:
    # After the swap, not before: a branch that is there now was there when the commit landed.
    try:
        check_still_there(graph.store, ref)
    except StorageError as unreachable:
        commit_id = state.snapshot.commit.graph_commit_id
        raise CommitOutcomeUnknown(
            f"commit {commit_id} is in the catalog of {ref.branch}, but nothing tells whether the "
            f"branch still is: {unreachable.message}",
            commit_id=commit_id,
            hint=f"do not write again; when the store answers, look for commit {commit_id}",
        ) from unreachable


def _flush(graph: CommitGraph, ref: BranchRef, state: CatalogState) -> None:
    try:
        graph.catch_up(ref, state)
    except (StorageError, ConflictError):
        return  # the next flush or reader has the same commits to append
