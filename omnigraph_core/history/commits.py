"""The commit graph: the log of commits, completed from the catalogs it is a projection of.

Every catalog image carries the newest commits of its branch, so catching up reads one version for
every `recent_commits` missing ones, and none if the log was flushed on time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import CommitNotFound
from omnigraph_core.history import refs
from omnigraph_core.history.ancestry import first_parents
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.log import CommitLog
from omnigraph_core.history.refs import BranchRef
from omnigraph_core.manifest.catalog import load_latest, try_load_version
from omnigraph_core.manifest.layout import branch_manifest_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.storage.session import Store


class CommitGraph:
    """Commits of all branches. Safe to share between threads: the log decides."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.log = CommitLog(store)

    def catch_up(self, ref: BranchRef, state: CatalogState) -> None:
        """Append to the log what it lacks of a branch's own commits up to a state."""
        self.log.record(self._missing(ref, state))

    def of_branch(self, ref: BranchRef, state: CatalogState) -> dict[str, GraphCommit]:
        """Every commit a branch contains, inherited ones too, by id."""
        self._catch_up_lineage(ref, state)
        known = {commit.graph_commit_id: commit for commit in self.log.commits()}
        return {**known, **{item.graph_commit_id: item for item in state.snapshot.image.commits}}

    def lineage(self, ref: BranchRef, state: CatalogState) -> Iterator[GraphCommit]:
        """A branch's commits along first parents, newest first."""
        known = self.of_branch(ref, state)
        return first_parents(state.snapshot.commit.graph_commit_id, known.get)

    def find(self, commit_id: str) -> GraphCommit:
        """
        Raises:
            CommitNotFound: no branch has it.
        """
        # Looked for in the log again: meanwhile another process may have recorded it.
        found = (
            self.log.find(commit_id) or self._find_unrecorded(commit_id) or self.log.find(commit_id)
        )
        if found is None:
            raise CommitNotFound(f"no commit `{commit_id}`", hint="`list_commits` shows them")
        return found

    def _find_unrecorded(self, commit_id: str) -> GraphCommit | None:
        for ref in (refs.MAIN_REF, *refs.list_branch_refs(self.store)):
            state = load_latest(catalog_of(self.store, ref))
            for commit in self._missing(ref, state):
                if commit.graph_commit_id == commit_id:
                    return commit
        return None

    def _catch_up_lineage(self, ref: BranchRef, state: CatalogState) -> None:
        """Catch up a branch and those it was forked from, each up to its fork."""
        self.catch_up(ref, state)
        fork = ref.forked_from
        while fork is not None and self.log.known_version(fork.incarnation) < fork.manifest_version:
            source = self._ref_of(fork.branch, fork.incarnation)
            at_fork = try_load_version(catalog_of(self.store, source), fork.manifest_version)
            if at_fork is None:
                return  # trimmed: cleanup has recorded its commits before
            self.catch_up(source, at_fork)
            fork = source.forked_from

    def _ref_of(self, branch: str, incarnation: str) -> BranchRef:
        if incarnation == refs.MAIN_REF.incarnation:
            return refs.MAIN_REF
        found = refs.try_read_branch(self.store, branch)
        if found is not None and found.incarnation == incarnation:
            return found
        return BranchRef(branch, incarnation, branch_manifest_path(incarnation), None, 0, None)

    def _missing(self, ref: BranchRef, state: CatalogState) -> tuple[GraphCommit, ...]:
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
