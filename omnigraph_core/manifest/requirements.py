"""What must still hold when a commit lands: values that check themselves on the newest state.

Together with the compare-and-swap on that state they make a commit that was prepared earlier safe:
it lands on a state on which nothing it relied on has moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import PreconditionFailed, VersionConflict
from omnigraph_core.settings import PUBLISH_LEASE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.manifest.snapshot import Snapshot

SCHEMA_MEMBER: Final = "schema"
"""What `SchemaIs` calls itself in a `PreconditionFailed`."""

KEY_MEMBER: Final = "idempotency key"
"""What `KeyIsNew` calls itself in a `PreconditionFailed`."""


@dataclass(frozen=True, slots=True)
class PublishState:
    """What a commit would land on; `now` is in seconds since the epoch."""

    snapshot: Snapshot
    now: float


@dataclass(frozen=True, slots=True)
class HeadIs:
    """Nothing at all was committed since; for callers that ask for exactly that."""

    commit_id: str

    def check(self, state: PublishState) -> None:
        _check_equal("head", self.commit_id, state.snapshot.commit.graph_commit_id)


@dataclass(frozen=True, slots=True)
class TableAt:
    """A table that is written is at this version: 0 if never there, its tombstone's if removed."""

    table_key: str
    version: int

    def check(self, state: PublishState) -> None:
        _check_version(self.table_key, self.version, state)


@dataclass(frozen=True, slots=True)
class TableUnchanged:
    """A table that validation has read, and the commit does not write, is at this version."""

    table_key: str
    version: int

    def check(self, state: PublishState) -> None:
        _check_version(self.table_key, self.version, state)


@dataclass(frozen=True, slots=True)
class SchemaIs:
    """The schema the rows were typed by is in force."""

    hash: str

    def check(self, state: PublishState) -> None:
        _check_equal(SCHEMA_MEMBER, self.hash, state.snapshot.schema.hash)


@dataclass(frozen=True, slots=True)
class BranchIs:
    """The branch was not deleted and made again under its name."""

    incarnation: str

    def check(self, state: PublishState) -> None:
        _check_equal("branch", self.incarnation, state.snapshot.incarnation)


@dataclass(frozen=True, slots=True)
class StagedWithin:
    """The staged files are too young for cleanup to have taken them for garbage.

    `since` is when staging began, in seconds since the epoch.
    """

    since: float
    lease: float

    def check(self, state: PublishState) -> None:
        age = state.now - self.since
        # Clocks of two hosts may differ a little; by more than the lease, no age can be told.
        if not abs(age) <= self.lease:
            raise PreconditionFailed("lease", f"at most {self.lease:.0f} s old", f"{age:.0f} s old")


@dataclass(frozen=True, slots=True)
class KeyIsNew:
    """No commit of the branch has this idempotency key.

    `seen_version` is the newest one up to which the key was looked for; what came since must be
    among the commits the image carries, or nothing tells.
    """

    key: str
    incarnation: str
    seen_version: int

    def check(self, state: PublishState) -> None:
        image = state.snapshot.image
        found = image.find_keyed(self.incarnation, self.key)
        if found is not None:
            raise PreconditionFailed(KEY_MEMBER, "new", f"that of commit {found.graph_commit_id}")
        needed = image.complete_since(self.incarnation) - 1
        if needed > self.seen_version:
            raise PreconditionFailed(
                KEY_MEMBER, f"looked for up to version {needed}", f"up to {self.seen_version}"
            )


Requirement = HeadIs | TableAt | TableUnchanged | SchemaIs | BranchIs | StagedWithin | KeyIsNew


def check_all(requirements: Iterable[Requirement], state: PublishState) -> None:
    """Check every requirement; the error is that of the first that fails and names the others.

    Raises:
        VersionConflict: a table has moved.
        PreconditionFailed: the head, the schema or the branch has, the lease has run out, or the
            idempotency key is in use.
    """
    failures: list[VersionConflict | PreconditionFailed] = []
    for requirement in requirements:
        try:
            requirement.check(state)
        except (VersionConflict, PreconditionFailed) as failure:
            failures.append(failure)
    if not failures:
        return
    first, *others = failures
    if others:
        first.hint = f"{first.hint}; also, {'; '.join(other.message for other in others)}"
    raise first


def requirements_of(
    snapshot: Snapshot, *, touched: Iterable[str], read: Iterable[str] = ()
) -> tuple[Requirement, ...]:
    """What a commit prepared on a snapshot relies on.

    Not the head: commits that touch and read other tables may land in between.

    Args:
        touched: keys of the tables it writes.
        read: keys of the tables its validation has read.
    """
    written = frozenset(touched)
    version_of = snapshot.image.version_of
    return (
        BranchIs(snapshot.incarnation),
        SchemaIs(snapshot.schema.hash),
        StagedWithin(snapshot.read_at, PUBLISH_LEASE.read()),
        *(TableAt(key, version_of(key)) for key in sorted(written)),
        *(TableUnchanged(key, version_of(key)) for key in sorted(frozenset(read) - written)),
    )


def _check_equal(member: str, expected: str, actual: str) -> None:
    if actual != expected:
        raise PreconditionFailed(member, expected, actual)


def _check_version(table_key: str, expected: int, state: PublishState) -> None:
    actual = state.snapshot.image.version_of(table_key)
    if actual != expected:
        raise VersionConflict(table_key, expected, actual)
