"""What every part of the façade works with: the store, the commit graph, and known heads.

A head once read is kept, so the next call probes for a newer one instead of listing; what comes
out is the newest state all the same.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from omnigraph_core.errors import BranchNotFound, ObjectNotFound
from omnigraph_core.history.branches import catalog_of, find_branch
from omnigraph_core.history.commits import CommitGraph
from omnigraph_core.manifest.catalog import load_latest, load_since

if TYPE_CHECKING:
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.storage.session import Store

_MAX_KNOWN_HEADS = 256


class GraphContext:
    """One open graph. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.commits = CommitGraph(store)
        self._heads: dict[str, CatalogState] = {}
        self._lock = threading.Lock()

    def head(self, branch: str) -> tuple[BranchRef, CatalogState]:
        """A branch and its newest state.

        Raises:
            BranchNotFound: there is none of that name.
        """
        ref = find_branch(self.store, branch)
        catalog = catalog_of(self.store, ref)
        known = self._heads.get(ref.incarnation)
        try:
            state = load_latest(catalog) if known is None else load_since(catalog, known)
        except ObjectNotFound as gone:
            raise BranchNotFound(
                f"the catalog of `{ref.branch}` is gone: {gone.message}",
                hint="restore the directory from a copy of the graph, or delete the branch",
            ) from gone
        self.remember(state)
        return ref, state

    def remember(self, state: CatalogState) -> None:
        """Keep a head for the next caller, unless a newer one is known."""
        incarnation = state.snapshot.incarnation
        with self._lock:
            known = self._heads.pop(incarnation, None)
            if known is not None and known.stored.version > state.stored.version:
                state = known
            self._heads[incarnation] = state
            if len(self._heads) > _MAX_KNOWN_HEADS:
                self._heads.pop(next(iter(self._heads)))  # the one not asked for the longest
