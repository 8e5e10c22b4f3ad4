"""What every part of the façade works with: the store, the commit graph, and known heads.

A head once read is kept, so the next call probes for a newer one instead of listing; what comes
out is the newest state all the same.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.errors import BranchNotFound, ObjectNotFound
from omnigraph_core.history.branches import catalog_of, find_branch
from omnigraph_core.history.commits import CommitGraph
from omnigraph_core.history.tables import OpenTables
from omnigraph_core.manifest.catalog import load_latest, load_since

if TYPE_CHECKING:
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

K = TypeVar("K")
V = TypeVar("V")

_MAX_KNOWN_HEADS: Final = 256


class GraphContext:
    """One open graph. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.commits = CommitGraph(store)
        self._heads: dict[str, CatalogState] = {}
        self._refs: dict[str, BranchRef] = {}
        self._asked: dict[str, float] = {}
        self.tables = OpenTables(store)
        self._lock = threading.Lock()

    def head(self, branch: str) -> tuple[BranchRef, CatalogState]:
        """A branch and its newest state.

        Raises:
            BranchNotFound: there is none of that name.
        """
        now = time.monotonic()
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
        self.remember(state, ref)
        with self._lock:
            _keep(self._asked, branch, now, _MAX_KNOWN_HEADS)
        return ref, state

    def recent(self, branch: str, max_age: float) -> tuple[BranchRef, CatalogState]:
        """A branch and its newest state, or the newest known if that is young enough.

        Args:
            max_age: seconds since the store was last asked, up to which it is not asked again.

        Raises:
            BranchNotFound: there is none of that name.
        """
        asked = self._asked.get(branch)
        if asked is None or time.monotonic() - asked > max_age:
            return self.head(branch)
        return self.base(branch)

    def base(self, branch: str) -> tuple[BranchRef, CatalogState]:
        """A branch and the newest state known of it, to commit on: publishing finds out if it is
        not the newest, and costs less than asking first.

        Raises:
            BranchNotFound: there is none of that name.
        """
        ref = self._refs.get(branch)
        state = None if ref is None else self._heads.get(ref.incarnation)
        return self.head(branch) if ref is None or state is None else (ref, state)

    def forget(self, ref: BranchRef) -> None:
        """Drop what is known of a branch."""
        with self._lock:
            self._refs.pop(ref.branch, None)
            self._asked.pop(ref.branch, None)
            self._heads.pop(ref.incarnation, None)

    def table(self, location: str, physical_version: int) -> Table:
        """A table at a version, for work that begins now.

        Raises:
            ObjectNotFound: the version, or the table, is not in the store.
        """
        return self.tables.get(location, physical_version).reopened()

    def remember(self, state: CatalogState, ref: BranchRef | None = None) -> None:
        """Keep a head for the next caller, unless a newer one is known."""
        incarnation = state.snapshot.incarnation
        with self._lock:
            known = self._heads.get(incarnation)
            if known is not None and known.stored.version > state.stored.version:
                state = known
            _keep(self._heads, incarnation, state, _MAX_KNOWN_HEADS)
            if ref is not None:
                _keep(self._refs, ref.branch, ref, _MAX_KNOWN_HEADS)


def _keep(kept: dict[K, V], key: K, value: V, most: int) -> None:
    """Put a value last; beyond `most` the one not asked for the longest goes."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        kept.pop(next(iter(kept)))
