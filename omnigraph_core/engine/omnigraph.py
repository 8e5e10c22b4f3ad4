"""`Omnigraph`: one open graph, and everything that can be done with it.

A handle is cheap, holds no branch of its own and is safe to share between threads and to use beside
any number of other processes on the same graph.
"""

from __future__ import annotations

import weakref
from copy import copy
from typing import TYPE_CHECKING

from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.engine import branching, entities, protection
from omnigraph_core.engine.diffs import Diffs
from omnigraph_core.engine.evolution import Evolution
from omnigraph_core.engine.lifecycle import init_graph, open_graph
from omnigraph_core.engine.merging import Merging
from omnigraph_core.engine.reads import Reads
from omnigraph_core.engine.rights import Rights
from omnigraph_core.engine.run_calls import Runs
from omnigraph_core.engine.upkeep import Upkeep
from omnigraph_core.engine.writes import Writes
from omnigraph_core.errors import OmnigraphError
from omnigraph_core.exec.queries import QueryCache
from omnigraph_core.history import door, refs
from omnigraph_core.history.runs import RunRegistry
from omnigraph_core.history.snapshots import ReadTarget, commit_at_time, state_at_commit
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.changes import SchemaChange
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.names import check_actor
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import BranchIs
from omnigraph_core.policy.model import Action
from omnigraph_core.storage.derived import DerivedFiles

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef, Tag
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.requirements import Requirement
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.policy.model import Judge
    from omnigraph_core.storage.dataset import Table


class Omnigraph(Reads, Writes, Diffs, Merging, Evolution, Runs, Upkeep):
    """An open graph, as one actor may use it."""

    def __init__(self, context: GraphContext, rights: Rights | None = None) -> None:
        self._context = context
        self._rights = rights or Rights()
        self._queries = QueryCache()
        self._derived = DerivedFiles(context.store)
        self._embedder = Embedder.from_settings()
        # Handles of other actors share both, so it goes with the last of them.
        weakref.finalize(context, self._embedder.close)

    def close(self) -> None:
        """Give back what is held open outside; the handle may be used again all the same."""
        self._embedder.close()

    def __enter__(self) -> Omnigraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def init(cls, address: str, schema: str, *, actor: str | None = None) -> Omnigraph:
        """Make an empty graph with a schema in `.pg` text.

        Raises:
            CompileError: the schema text is wrong.
            AlreadyExists: there is a graph at that address.
            StorageError: the store cannot be written, or cannot keep a graph safely.
        """
        return cls(init_graph(address, schema, actor=actor))

    @classmethod
    def open(
        cls, address: str, *, policy: Judge | None = None, actor: str | None = None
    ) -> Omnigraph:
        """Open a graph.

        Args:
            policy: asked before anything is done; without one everything is allowed.
            actor: who does what is done with this handle, unless a call names somebody else.

        Raises:
            GraphNotFound: there is none at that address.
            FormatTooNew: a newer release wrote it.
        """
        who = check_actor(actor)
        context = open_graph(address)
        return cls(context, Rights(policy, who, RunRegistry(context.store)))

    def acting_as(self, actor: str | None) -> Omnigraph:
        """The same graph, caches and policy in the hands of another actor; costs nothing.

        Raises:
            ConfigError: not a name for an actor.
        """
        other = copy(self)
        other._rights = self._rights.of(check_actor(actor))
        return other

    @property
    def actor(self) -> str | None:
        """Who does what is done with this handle."""
        return self._rights.actor

    @property
    def rights(self) -> Rights:
        """What the actor may do: to be asked before doing what is no call of a graph."""
        return self._rights

    @property
    def uri(self) -> str:
        return self._context.store.root.text

    # Branches

    def branch_create(
        self, name: str, *, source: str | ReadTarget = MAIN, actor: str | None = None
    ) -> BranchRef:
        """Fork a branch from another one, or from a commit or tag.

        Raises:
            ConfigError: not a name for a branch.
            AlreadyExists: the name is taken.
            NotFoundError: no such source.
        """
        target, actor = _target(source), self._rights.who(actor)
        state = self._rights.demand_at(
            self._context, Action.BRANCH_CREATE, target, target_branch=name, actor=actor
        )
        is_head = target.branch is not None
        return branching.fork_branch(self._context, name, state, is_head=is_head, actor=actor)

    def branch_list(self) -> tuple[str, ...]:
        """The names of all branches, main first."""
        self._rights.demand(Action.READ)
        return refs.list_branch_names(self._context.store)

    def branch_get(self, name: str) -> BranchRef:
        """
        Raises:
            BranchNotFound: there is none of that name.
        """
        self._rights.demand(Action.READ)
        return self._context.head(name)[0]

    def branch_delete(self, name: str, *, actor: str | None = None) -> None:
        """Remove a branch. Its commits stay readable by id until cleanup takes them.

        Raises:
            ConfigError: main cannot be deleted.
            BranchNotFound: there is none of that name.
            BranchInUse: branches forked from it, or running runs, depend on it.
        """
        actor = self._rights.demand(Action.BRANCH_DELETE, target_branch=name, actor=actor)
        branching.delete_branch(self._context, name, actor=actor)

    # Commits

    def list_commits(
        self, branch: str | None = None, *, limit: int | None = None
    ) -> tuple[GraphCommit, ...]:
        """Every commit a branch contains, newest first; without a name those of main.

        Raises:
            BranchNotFound: there is none of that name.
        """
        self._rights.demand(Action.READ, branch=branch)
        chosen = MAIN if branch is None else branch
        return branching.list_commits(self._context, chosen, limit=limit)

    def get_commit(self, commit_id: str) -> GraphCommit:
        """
        Raises:
            CommitNotFound: no branch has it.
        """
        self._rights.demand(Action.READ)
        return self._context.commits.find(commit_id)

    def head_commit_id_for_branch(self, branch: str = MAIN) -> str:
        """
        Raises:
            BranchNotFound: there is none of that name.
        """
        return self.snapshot(branch).commit.graph_commit_id

    def commit(
        self,
        changes: Sequence[Change],
        requirements: Sequence[Requirement],
        *,
        branch: str = MAIN,
        operation: str = "commit",
        commit_id: str | None = None,
        actor: str | None = None,
    ) -> GraphCommit:
        """Publish staged table versions, all or none, if every requirement holds.

        Without changes the requirements are checked and nothing is written.

        Args:
            commit_id: chosen before, so that a caller can look for it if the answer is lost.

        Raises:
            VersionConflict, PreconditionFailed: something moved; prepare again.
            PublishContention: other writers were first every time; nothing was written.
            CommitOutcomeUnknown: the store stopped answering; the commit may have landed.
        """
        actor = self._rights.demand(Action.CHANGE, branch=branch, actor=actor)
        if any(isinstance(change, SchemaChange) for change in changes):
            self._rights.demand(Action.SCHEMA_APPLY, target_branch=branch, actor=actor)
        # What only checks must look at the newest state; what commits finds it by committing.
        ref, state = self._context.base(branch) if changes else self._context.head(branch)
        wanted = (BranchIs(ref.incarnation), *requirements)
        draft = CommitDraft(
            tuple(changes), wanted, operation, actor=actor, commit_id=commit_id or new_ulid()
        )
        try:
            published = door.commit(self._context.commits, ref, draft, base=state)
        except OmnigraphError:
            self._context.forget(ref)  # whatever went wrong, the next call looks anew
            raise
        self._context.remember(published)
        return published.snapshot.commit

    # Snapshots

    def snapshot(self, branch: str = MAIN) -> Snapshot:
        """A branch as it is now.

        Raises:
            BranchNotFound: there is none of that name.
        """
        self._rights.demand(Action.READ, branch=branch)
        return self._context.head(branch)[1].snapshot

    def snapshot_of(self, target: str | ReadTarget) -> Snapshot:
        """The snapshot a branch, commit or tag names.

        Raises:
            NotFoundError: there is no such thing, or cleanup has removed it.
        """
        return self._rights.demand_at(self._context, Action.READ, _target(target)).snapshot

    def snapshot_at_version(self, version: int, *, branch: str = MAIN) -> Snapshot:
        """A branch at one of its manifest versions.

        Raises:
            SnapshotNotFound: it never was, or cleanup has removed it.
        """
        self._rights.demand(Action.READ, branch=branch)
        return branching.state_at_version(self._context, branch, version).snapshot

    def snapshot_at_time(self, moment: datetime, *, branch: str = MAIN) -> Snapshot:
        """A branch as it was at a moment; without a zone it is UTC.

        Raises:
            SnapshotNotFound: the graph is younger, or cleanup has removed that version.
        """
        self._rights.demand(Action.READ, branch=branch)
        ref, state = self._context.head(branch)
        commit = commit_at_time(self._context.commits, ref, state, moment)
        return state_at_commit(self._context.store, commit).snapshot

    def hold(
        self, snapshot: Snapshot, *, purpose: str, lasting: timedelta
    ) -> AbstractContextManager[CatalogState]:
        """Keep a snapshot from cleanup for a block: for exports and other long reads."""
        self._rights.demand(Action.READ, branch=snapshot.branch)
        return protection.hold(self._context.store, snapshot, purpose=purpose, lasting=lasting)

    def table(self, snapshot: Snapshot, table_key: str) -> Table:
        """A snapshot's table, to read or to stage on.

        Raises:
            TableNotFound: the snapshot has no such table.
            ObjectNotFound: its files are gone.
        """
        self._rights.demand(Action.READ, branch=snapshot.branch)
        return self._table(snapshot, table_key)

    def entity_at(
        self, table_key: str, id: str, *, version: int, branch: str = MAIN
    ) -> dict[str, object] | None:
        """One row as JSON at a manifest version of a branch; None if it was not there.

        Raises:
            SnapshotNotFound: there is no such version.
        """
        snapshot = self.snapshot_at_version(version, branch=branch)
        if table_key not in snapshot.tables:
            return None
        return entities.find_entity(self._table(snapshot, table_key), id)

    # Tags

    def tag_create(
        self, name: str, target: str | ReadTarget = MAIN, *, actor: str | None = None
    ) -> Tag:
        """Name a commit for good: cleanup spares what is tagged.

        Raises:
            ConfigError: not a name for a tag.
            AlreadyExists: the name is taken.
            NotFoundError: no such target.
        """
        actor = self._rights.who(actor)
        state = self._rights.demand_at(
            self._context, Action.BRANCH_CREATE, _target(target), actor=actor
        )
        return protection.create_tag(self._context.store, name, state.snapshot, actor=actor)

    def tag_list(self) -> tuple[Tag, ...]:
        """All tags, by name."""
        self._rights.demand(Action.READ)
        return refs.list_tags(self._context.store)

    def tag_delete(self, name: str) -> None:
        """
        Raises:
            TagNotFound: there is none of that name.
        """
        self._rights.demand(Action.BRANCH_DELETE)
        refs.delete_tag(self._context.store, refs.read_tag(self._context.store, name).tag)

    def _table(self, snapshot: Snapshot, table_key: str) -> Table:
        entry = snapshot.table(table_key)
        return self._context.table(entry.location, entry.physical_version)


def _target(target: str | ReadTarget) -> ReadTarget:
    return ReadTarget(branch=target) if isinstance(target, str) else target
