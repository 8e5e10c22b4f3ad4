"""The commit graph: the log of commits, completed from the catalogs it is a projection of.

Every catalog image carries the newest commits of its branch, so catching up reads one version for
every `recent_commits` missing ones, and none if the log was flushed on time.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import CommitNotFound, ConflictError, ObjectNotFound, StorageError
from omnigraph_core.history import refs
from omnigraph_core.history.ancestry import first_parents
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.log import CommitLog
from omnigraph_core.history.refs import BranchRef
from omnigraph_core.manifest.catalog import load_latest, try_load_version
from omnigraph_core.manifest.image import find_keyed
from omnigraph_core.manifest.layout import branch_manifest_path
from omnigraph_core.manifest.retry import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.history.refs import ForkPoint
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.storage.session import Store

_READERS: Final = 8


class CommitGraph:
    """Commits of all branches. Safe to share between threads: the log decides."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.log = CommitLog(store)
        self.turns = Turns()

    def catch_up(self, ref: BranchRef, state: CatalogState) -> None:
        """Append to the log what it lacks of a branch's own commits up to a state."""
        self.log.record(self.missing(ref, state))

    def of_branch(self, ref: BranchRef, state: CatalogState) -> dict[str, GraphCommit]:
        """Every commit known that a branch contains, and maybe others, by id."""
        missing = self._missing_of_lineage(ref, state)
        self._try_record(missing)
        found = (*self.log.commits(), *missing, *state.snapshot.image.commits)
        known = {commit.graph_commit_id: commit for commit in found}
        merged = {commit.merged_parent_commit_id for commit in found}
        if merged <= {None, *known}:
            return known
        # Of a branch whose commits nobody could record when it was merged. Without them a later
        # merge would take an older commit for the newest in common, and merge the same again.
        missing = tuple(self._iter_unrecorded())
        self._try_record(missing)
        return known | {commit.graph_commit_id: commit for commit in missing}

    def _try_record(self, commits: Sequence[GraphCommit]) -> None:
        with contextlib.suppress(StorageError, ConflictError):
            self.log.record(commits)  # who may only read still gets the answer

    def lineage(self, ref: BranchRef, state: CatalogState) -> Iterator[GraphCommit]:
        """A branch's commits along first parents, newest first."""
        known = self.of_branch(ref, state)
        return first_parents(state.snapshot.commit.graph_commit_id, known.get)

    def find(self, commit_id: str) -> GraphCommit:
        """
        Raises:
            CommitNotFound: no branch has it.
        """
        found = (
            self.log.find(commit_id)
            or self._find_unrecorded(commit_id)
            or self.log.find(commit_id)  # recorded by another process in between
        )
        if found is None:
            raise CommitNotFound(f"no commit `{commit_id}`", hint="`list_commits` shows them")
        return found

    def find_keyed(
        self, ref: BranchRef, state: CatalogState, idempotency_key: str
    ) -> GraphCommit | None:
        """The commit a branch itself has made with that key, up to a state.

        The image alone tells while the branch is young; later what the log said before does, and
        it is asked again once in many commits.
        """
        image = state.snapshot.image
        found = image.find_keyed(ref.incarnation, idempotency_key)
        older = image.complete_since(ref.incarnation) - 1
        if found is not None or older == 0:
            return found
        found, is_complete = self.log.find_keyed(ref.incarnation, idempotency_key, up_to=older)
        if found is not None or is_complete:
            return found
        missing = self.missing(ref, state)
        self._try_record(missing)
        # The log once more: others may have recorded what was missing a moment ago.
        recorded, _ = self.log.find_keyed(ref.incarnation, idempotency_key, up_to=older)
        return recorded or find_keyed(missing, ref.incarnation, idempotency_key)

    def _find_unrecorded(self, commit_id: str) -> GraphCommit | None:
        commits = self._iter_unrecorded()
        return next((item for item in commits if item.graph_commit_id == commit_id), None)

    def _iter_unrecorded(self) -> Iterator[GraphCommit]:
        """What the log lacks of any branch, deleted ones included."""
        # Branches before marks: one deleted in between is in both, never in none.
        live = (refs.MAIN_REF, *refs.list_branch_refs(self.store))
        gone = tuple(mark.ref for mark in refs.list_deleted(self.store))
        with ThreadPoolExecutor(_READERS) as pool:
            for group in pool.map(self._unrecorded, (*live, *gone)):
                yield from group

    def _unrecorded(self, ref: BranchRef) -> tuple[GraphCommit, ...]:
        try:
            return self.missing(ref, load_latest(catalog_of(self.store, ref)))
        except ObjectNotFound:
            return ()  # its catalog is lost, or cleanup has just taken it

    def _missing_of_lineage(self, ref: BranchRef, state: CatalogState) -> tuple[GraphCommit, ...]:
        """What the log lacks of a branch and of those it was forked from, each up to its fork."""
        found = [*self.missing(ref, state)]
        fork = ref.forked_from
        while fork is not None:
            source = self._ref_of(fork)
            if self.log.known_version(fork.incarnation) < fork.manifest_version:
                at_fork = try_load_version(catalog_of(self.store, source), fork.manifest_version)
                if at_fork is not None:  # otherwise trimmed, and recorded before that
                    found += self.missing(source, at_fork)
            fork = source.forked_from
        return tuple(found)

    def _ref_of(self, fork: ForkPoint) -> BranchRef:
        if fork.incarnation == refs.MAIN_REF.incarnation:
            return refs.MAIN_REF
        live = refs.try_read_branch(self.store, fork.branch)
        if live is not None and live.incarnation == fork.incarnation:
            return live
        mark = refs.try_read_deleted(self.store, fork.incarnation)
        if mark is not None:
            return mark.ref
        path = branch_manifest_path(fork.incarnation)
        return BranchRef(fork.branch, fork.incarnation, path, None, 0, None)

    def missing(self, ref: BranchRef, state: CatalogState) -> tuple[GraphCommit, ...]:
        """The branch's own commits the log lacks, oldest first."""
        recorded = self.log.known_version(ref.incarnation)
        found: dict[int, GraphCommit] = {}
        at: CatalogState | None = state
        while at is not None:
            own = [c for c in at.snapshot.image.commits if c.incarnation == ref.incarnation]
            found.update({c.manifest_version: c for c in own if c.manifest_version > recorded})
            oldest = min((c.manifest_version for c in own), default=0)
            if len(own) < len(at.snapshot.image.commits) or oldest - 1 <= recorded:
                break  # the rest is inherited, or recorded
            at = try_load_version(catalog_of(self.store, ref), oldest - 1)
        return tuple(found[version] for version in sorted(found))
