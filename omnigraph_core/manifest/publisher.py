"""The one place where something becomes visible: changes and requirements in, a commit out.

Each attempt checks the requirements on the newest image and writes the next image by compare-and-
swap, so a commit is based on exactly what was checked. The commit id is chosen before the first
attempt: if an answer is lost, looking for the id tells whether the commit landed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.constants import PUBLISHER_RETRY_BUDGET
from omnigraph_core.errors import (
    CommitOutcomeUnknown,
    ConfigError,
    ConflictError,
    InvariantBroken,
    PublishContention,
    StorageError,
)
from omnigraph_core.failpoints import declare
from omnigraph_core.ids import is_ulid, new_ulid
from omnigraph_core.manifest.catalog import (
    CatalogState,
    as_state,
    load_latest,
    try_load_version,
)
from omnigraph_core.manifest.changes import add_commit, apply_changes, check_changes, touched
from omnigraph_core.manifest.image import MAIN, GraphCommit
from omnigraph_core.manifest.names import check_actor
from omnigraph_core.manifest.requirements import (
    PublishState,
    TableAt,
    check_all,
)
from omnigraph_core.manifest.retry import back_off
from omnigraph_core.manifest.rows import encode_image
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.storage import image as images

if TYPE_CHECKING:
    from omnigraph_core.manifest.catalog import Catalog
    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import Image
    from omnigraph_core.manifest.requirements import Requirement
    from omnigraph_core.manifest.snapshot import Snapshot

_BEFORE: Final = declare("publish.before_image", "everything is staged, no image is written")
_AFTER: Final = declare("publish.after_image", "the commit is visible, its writer not yet told")


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit before it lands. Without changes and merged parent it only checks.

    The last three are kept with the commit, for a repeat of the request it was made by.
    """

    changes: tuple[Change, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    operation: str = "commit"
    merged_parent_commit_id: str | None = None
    actor: str | None = None
    commit_id: str = field(default_factory=new_ulid)
    idempotency_key: str | None = None
    request_digest: str | None = None
    summary: str | None = None

    def __post_init__(self) -> None:
        check_actor(self.actor)
        if not is_ulid(self.commit_id):
            raise ConfigError(f"`{self.commit_id}` is no commit id", hint="give a ULID, or none")

    @property
    def is_check_only(self) -> bool:
        return not self.changes and self.merged_parent_commit_id is None


def publish(
    catalog: Catalog, draft: CommitDraft, *, base: CatalogState | None = None
) -> CatalogState:
    """Make the draft's changes visible, all or none.

    Args:
        base: the newest state as the caller read it; saves reading it again.

    Raises:
        VersionConflict, PreconditionFailed: a requirement does not hold; nothing was written.
        PublishContention: other writers won every attempt; nothing was written.
        CommitOutcomeUnknown: the store stopped answering; the commit may have landed.
    """
    _check_complete(draft)
    state = _first_state(catalog, draft, base)
    if draft.is_check_only:
        return state
    lost: _LostAnswer | None = None
    for attempt in range(PUBLISHER_RETRY_BUDGET.value + 1):
        try:
            outcome = _attempt(catalog, state, draft)
        except (StorageError, ConflictError) as problem:
            if lost is None:
                raise
            raise _unknown(catalog, draft, lost) from problem
        if isinstance(outcome, CatalogState):
            _AFTER.hit()
            return outcome
        lost = outcome or lost
        back_off(attempt)
        state = _reload(catalog, draft, lost)
        if lost is not None and not _is_still_at_base(state, lost):
            landed = _landed(catalog, draft, lost)
            if landed is not None:
                return landed
            lost = None  # another commit took its place for good
    if lost is not None:
        raise _unknown(catalog, draft, lost)
    raise PublishContention(
        f"other writers were first on {catalog.branch} in every attempt to commit",
        hint="nothing was written; try again",
    )


def _first_state(catalog: Catalog, draft: CommitDraft, base: CatalogState | None) -> CatalogState:
    """A state on which the requirements hold: the caller's if possible, else the newest."""
    if base is not None and _is_fresh(base):
        try:
            _check(draft, base)
        except ConflictError:
            pass  # others may have committed since the caller read it
        else:
            return base
    newest = load_latest(catalog)
    _check(draft, newest)
    return newest


def _check(draft: CommitDraft, state: CatalogState) -> None:
    check_all(draft.requirements, PublishState(state.snapshot, time.time()))
    check_changes(draft.changes, state.snapshot.image, now=time.time())


@dataclass(frozen=True, slots=True)
class _LostAnswer:
    """An attempt that may have landed, as the version after its base and as nothing else."""

    base_version: int
    reason: StorageError


def _check_complete(draft: CommitDraft) -> None:
    """A commit says which versions it replaces, or it could undo others' work."""
    expected = {item.table_key for item in draft.requirements if isinstance(item, TableAt)}
    if missing := touched(draft.changes) - expected:
        raise InvariantBroken(f"a commit requires a version of what it changes: {sorted(missing)}")


def _is_fresh(state: CatalogState) -> bool:
    # Older than the lease, the versions after it may have been written and trimmed: writing the
    # next one would succeed and lose them.
    return state.stored.read_at.age() < PUBLISH_LEASE.read()


def _attempt(
    catalog: Catalog, state: CatalogState, draft: CommitDraft
) -> CatalogState | _LostAnswer | None:
    """The published state, None if another writer was first, or that the answer was lost."""
    _check(draft, state)
    image = next_image(state.snapshot, draft)
    _BEFORE.hit()
    pending = images.write_next(catalog.store, state.stored, encode_image(image))
    catalog.store.sync()  # what the image names must not be younger on disk than the image
    try:
        stored = images.try_commit(catalog.store, state.stored, pending)
        catalog.store.sync()
    except StorageError as problem:
        return _LostAnswer(state.stored.version, problem)
    if stored is None:
        return None
    published = as_state(catalog, image, stored)
    return published if _is_fresh(state) else _verified(catalog, published)


def _verified(catalog: Catalog, published: CatalogState) -> CatalogState | None:
    """What was published, or None if it was written beside a lineage that had gone on.

    Only after the lease can the versions in between have been trimmed, so that one too late finds
    its number free again.
    """
    newest = load_latest(catalog)
    ours = published.snapshot.commit
    is_kept = newest.stored.version == published.stored.version or any(
        commit.graph_commit_id == ours.graph_commit_id for commit in newest.snapshot.image.commits
    )
    return published if is_kept else None


def _reload(catalog: Catalog, draft: CommitDraft, lost: _LostAnswer | None) -> CatalogState:
    try:
        state = load_latest(catalog)
    except StorageError as unreachable:
        if lost is None:
            raise
        raise _unknown(catalog, draft, lost) from unreachable
    if lost is not None and lost.reason.is_refused and _is_still_at_base(state, lost):
        raise lost.reason  # refused, as by a full disk, and not landed
    return state


def _landed(catalog: Catalog, draft: CommitDraft, lost: _LostAnswer) -> CatalogState | None:
    """The state the lost attempt made, or None if another commit is in its place."""
    try:
        after = try_load_version(catalog, lost.base_version + 1)
    except StorageError as unreachable:
        raise _unknown(catalog, draft, lost) from unreachable
    if after is None:  # trimmed already: nothing tells any more
        raise _unknown(catalog, draft, lost)
    return after if after.snapshot.commit.graph_commit_id == draft.commit_id else None


def _is_still_at_base(state: CatalogState, lost: _LostAnswer) -> bool:
    return state.stored.version == lost.base_version


def next_image(snapshot: Snapshot, draft: CommitDraft) -> Image:
    """The image that follows a snapshot when the draft is applied to it."""
    branch = None if snapshot.branch == MAIN else snapshot.branch
    head = snapshot.commit
    commit = GraphCommit(
        graph_commit_id=draft.commit_id,
        manifest_branch=branch,
        incarnation=snapshot.incarnation,
        manifest_version=snapshot.manifest_version + 1,
        parent_commit_id=head.graph_commit_id,
        merged_parent_commit_id=draft.merged_parent_commit_id,
        actor_id=draft.actor,
        # Clocks of writers differ; a lineage is in order all the same.
        created_at=max(now_us(), head.created_at + 1),
        operation=draft.operation,
        idempotency_key=draft.idempotency_key,
        request_digest=draft.request_digest,
        summary=draft.summary,
    )
    return add_commit(apply_changes(snapshot.image, draft.changes, branch=branch), commit)


def _unknown(catalog: Catalog, draft: CommitDraft, lost: _LostAnswer) -> CommitOutcomeUnknown:
    return CommitOutcomeUnknown(
        f"no answer to commit {draft.commit_id} on {catalog.branch}: {lost.reason.message}",
        commit_id=draft.commit_id,
        hint=f"do not write again; when the store answers, look for commit {draft.commit_id}",
    )
