"""The one loop every write goes through: a way to prepare it comes in, what landed goes out.

A write lands once or not at all. Prepared again after a lost race it starts from the newest state,
and under an idempotency key a request that has landed before is answered from its commit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import PREPARE_BUDGET, PUBLISHER_RETRY_BUDGET
from omnigraph_core.errors import (
    BranchNotFound,
    CommitOutcomeUnknown,
    ConfigError,
    ConflictError,
    InvariantBroken,
    OmnigraphError,
    PreconditionFailed,
    StorageError,
)
from omnigraph_core.history import door
from omnigraph_core.history.branches import check_still_there
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import KEY_MEMBER, BranchIs, HeadIs, KeyIsNew
from omnigraph_core.manifest.retry import back_off, prepare_again

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.requirements import Requirement

MAX_KEY: Final = 200


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is to land.

    `if_commit` names the commit that must be the branch's head. `idempotency_key` makes the request
    safe to repeat: the branch takes one commit for each key.
    """

    branch: str = "main"
    if_commit: str | None = None
    idempotency_key: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A staged write. `summary`, ready for JSON, is its result if it lands."""

    changes: tuple[Change, ...]
    requirements: tuple[Requirement, ...]
    summary: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Landed:
    """What became of a write; without a commit there was nothing to change.

    A repeat carries the commit and the summary of the request that was first with the key.
    """

    commit: GraphCommit | None
    summary: Mapping[str, object]
    is_repeat: bool = False


def commit_write(
    context: GraphContext,
    options: WriteOptions,
    operation: str,
    prepare: Callable[[CatalogState], Prepared],
    *,
    digest: str | None = None,
    is_rerunnable: bool,
) -> Landed:
    """Prepare a write on a state of its branch and publish it; nothing is written if it is empty.

    Args:
        prepare: reads and stages on the given state, from scratch each time it is called.
        digest: tells requests apart that come with the same key.
        is_rerunnable: the write means the same on a newer state, as inserts and upserts do. It is
            then prepared again when what it was prepared on has moved.

    Raises:
        ConfigError: no such key can be.
        ConflictError: something moved, the head is not `if_commit`, or the key was used for another
            request; nothing was written.
        CommitOutcomeUnknown: the store stopped answering; the commit may have landed. With a key
            the request may be repeated all the same.
    """
    write = _Write(context, options, operation, prepare, digest)
    check_key(options.idempotency_key)
    if options.if_commit is None and is_rerunnable:
        return write.land_on_any()
    return write.land_on_newest()


def check_key(key: str | None) -> str | None:
    """An idempotency key as given.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be printed.
    """
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY:
        raise ConfigError(f"an idempotency key has 1 to {MAX_KEY} characters, not {len(key)}")
    if not key.isprintable():
        raise ConfigError(f"the idempotency key {key!r} holds characters that cannot be printed")
    return key


@dataclass(frozen=True, slots=True)
class _Write:
    """One request on its way through the attempts to land it."""

    context: GraphContext
    options: WriteOptions
    operation: str
    prepare: Callable[[CatalogState], Prepared]
    digest: str | None

    def land_on_any(self) -> Landed:
        """Begin with the state that is known, and begin anew for as long as a race is lost."""
        try:
            return self._land_on_known()
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
        back_off(0)
        return prepare_again(self._land_in_turn, retries=PREPARE_BUDGET.value - 1)

    def _land_in_turn(self) -> Landed:
        with self.context.commits.turns.turn(self.options.branch):
            return self.land_on_newest()

    def land_on_newest(self) -> Landed:
        return self._land_on(*self.context.head(self.options.branch))

    def _land_on_known(self) -> Landed:
        """Land on a state that may be old: only the newest may refuse a write or find it empty."""
        ref, state = self.context.base(self.options.branch)
        try:
            landed = self._try_land_on(ref, state)
        except BranchNotFound:
            # The branch known was deleted and is out of sight; there may be another of its name.
            self.context.forget(ref)
            landed = None
        return landed or self.land_on_newest()

    def _try_land_on(self, ref: BranchRef, state: CatalogState) -> Landed | None:
        """As `_land_on`; None when there is a newer state to ask."""
        repeat = self._find_repeat(ref, state)
        if repeat is not None:
            return repeat
        try:
            prepared = self.prepare(state)
        except OmnigraphError:
            if self._is_newest(state):
                raise
            return None
        if prepared.changes:
            return self._publish(ref, state, prepared)
        return Landed(None, prepared.summary) if self._is_newest(state) else None

    def _land_on(self, ref: BranchRef, state: CatalogState) -> Landed:
        # First the key: the head is not what it was when this very request has landed before.
        repeat = self._find_repeat(ref, state)
        if repeat is not None:
            return repeat
        self._check_head(state)
        prepared = self.prepare(state)
        if not prepared.changes:
            return Landed(None, prepared.summary)
        return self._publish(ref, state, prepared)

    def _find_repeat(self, ref: BranchRef, state: CatalogState) -> Landed | None:
        key = self.options.idempotency_key
        found = None if key is None else self.context.commits.find_keyed(ref, state, key)
        if found is None:
            return None
        check_still_there(self.context.store, ref)  # or it answers for a branch that is gone
        if found.request_digest != self.digest:
            raise ConflictError(
                f"the idempotency key `{key}` was used for another request, "
                f"which made commit {found.graph_commit_id}",
                hint="choose a new key for a new request",
            )
        return Landed(found, _summary_of(found), is_repeat=True)

    def _is_newest(self, state: CatalogState) -> bool:
        return self.context.head(self.options.branch)[1].snapshot == state.snapshot

    def _check_head(self, state: CatalogState) -> None:
        expected, head = self.options.if_commit, state.snapshot.commit.graph_commit_id
        if expected is not None and expected != head:
            raise PreconditionFailed("head", expected, head)

    def _publish(self, ref: BranchRef, state: CatalogState, prepared: Prepared) -> Landed:
        """Publish what was prepared, unless the key turns out to be used by now.

        If only too many others have landed since the key was looked for, it is looked for again and
        the staged work stays.
        """
        for attempt in range(PUBLISHER_RETRY_BUDGET.value + 1):
            try:
                return self._publish_once(ref, state, prepared)
            except ConflictError as conflict:
                if self.options.idempotency_key is None:
                    raise
                now, state = self.context.head(self.options.branch)
                repeat = self._find_repeat(now, state)
                if repeat is not None:
                    return repeat
                if now.incarnation != ref.incarnation or not _is_about_key(conflict):
                    raise
                lost = conflict
            back_off(attempt)
        raise lost

    def _publish_once(self, ref: BranchRef, state: CatalogState, prepared: Prepared) -> Landed:
        draft = self._draft(ref, state, prepared)
        try:
            published = door.commit(self.context.commits, ref, draft, base=state)
        except OmnigraphError as problem:
            self.context.forget(ref)  # whatever went wrong, the next attempt looks anew
            if isinstance(problem, CommitOutcomeUnknown) and draft.idempotency_key is not None:
                problem.hint = "when the store answers, repeat the request with the same key"
            raise
        self.context.remember(published)
        return Landed(published.snapshot.commit, prepared.summary)

    def _draft(self, ref: BranchRef, state: CatalogState, prepared: Prepared) -> CommitDraft:
        """The commit of one attempt, under an id of its own.

        An attempt follows another only when that one is known not to have landed. If nobody can
        know, the request may be repeated under its key: the lost attempt can only land next to the
        state it was prepared on. Either it got there, and `KeyIsNew` fails; or the repeat, or a
        commit before it, has that place, and the lost one never will.
        """
        key, if_commit = self.options.idempotency_key, self.options.if_commit
        version = state.snapshot.manifest_version
        return CommitDraft(
            prepared.changes,
            (
                # First, so that its failure is the one that is raised.
                *(() if key is None else (KeyIsNew(key, ref.incarnation, version),)),
                BranchIs(ref.incarnation),
                *(() if if_commit is None else (HeadIs(if_commit),)),
                *prepared.requirements,
            ),
            self.operation,
            actor=self.options.actor,
            idempotency_key=key,
            request_digest=None if key is None else self.digest,
            summary=None if key is None else _json(prepared.summary),
        )


def _is_about_key(conflict: ConflictError) -> bool:
    return isinstance(conflict, PreconditionFailed) and conflict.member == KEY_MEMBER


def _json(summary: Mapping[str, object]) -> str:
    try:
        return json.dumps(summary, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise InvariantBroken(f"the summary of a write is ready for JSON: {problem}") from problem


def _summary_of(commit: GraphCommit) -> Mapping[str, object]:
    try:
        summary = json.loads(commit.summary or "{}")
    except (ValueError, RecursionError) as problem:
        raise _damaged(commit) from problem
    if not isinstance(summary, dict):
        raise _damaged(commit)
    return summary


def _damaged(commit: GraphCommit) -> StorageError:
    return StorageError(
        f"the summary of commit {commit.graph_commit_id} is damaged: {commit.summary!r:.60}",
        hint="the commit has landed; what it returned is lost",
    )
