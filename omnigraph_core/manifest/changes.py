"""What a commit does to an image: small values, applied all together to give the next image.

Pure: the image given stays as it is. Every change of a table takes the next number of that table's
own counter, which a removal does not reset, so a version number never means two things.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.constants import RECENT_COMMITS
from omnigraph_core.errors import (
    AlreadyExists,
    InvariantBroken,
    PreconditionFailed,
    TableNotFound,
)
from omnigraph_core.manifest.image import AcceptedSchema, Image, TableEntry, TableOperation
from omnigraph_core.settings import PUBLISH_LEASE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.storage.dataset import Table


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """A new table, or one of the name of a removed table.

    `staged_since`, in seconds since the epoch: nothing of it was written before. The same below.
    """

    table_key: str
    location: str
    physical_version: int
    row_count: int
    fragment_count: int
    staged_since: float | None = None

    @classmethod
    def of(cls, table_key: str, table: Table) -> RegisterTable:
        """The change that makes a table visible."""
        return cls(
            table_key,
            table.location,
            table.physical_version,
            table.count_rows(),
            table.count_fragments(),
            table.staged_since,
        )


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """The next version of a table. `base_physical_version` is the one it was staged on."""

    table_key: str
    physical_version: int
    row_count: int
    fragment_count: int
    operation: TableOperation
    base_physical_version: int | None = None
    staged_since: float | None = None

    @classmethod
    def of(cls, table_key: str, table: Table, operation: TableOperation) -> UpdateTable:
        """The change that publishes a staged version."""
        return cls(
            table_key,
            table.physical_version,
            table.count_rows(),
            table.count_fragments(),
            operation,
            table.base_version,
            table.staged_since,
        )


@dataclass(frozen=True, slots=True)
class AdoptTable:
    """Another branch's table as it is there: the pointer is copied, no data is read.

    `staged_since` is when that branch's snapshot was read.
    """

    entry: TableEntry
    staged_since: float | None = None


@dataclass(frozen=True, slots=True)
class TombstoneTable:
    """A table is no longer visible; its older versions still are in older snapshots."""

    table_key: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A table under another key, its data where they were.

    `update`, of the new key, is there if the same commit also gives the table a new version.
    """

    old_key: str
    new_key: str
    update: UpdateTable | None = None


@dataclass(frozen=True, slots=True)
class AcceptSchema:
    """The schema in force from here on."""

    schema: AcceptedSchema


Change = RegisterTable | UpdateTable | AdoptTable | TombstoneTable | RenameTable | AcceptSchema
SchemaChange = RegisterTable | TombstoneTable | RenameTable | AcceptSchema
"""What changes which tables there are, and of what."""


def apply_changes(image: Image, changes: Iterable[Change], *, branch: str | None) -> Image:
    """The image after the changes; its commits are left as they are.

    Args:
        branch: the branch they are published on, None for main.

    Raises:
        AlreadyExists: a table to be made is there.
        TableNotFound: a table to be changed is not.
    """
    changes = tuple(changes)
    _check_once(changes)
    tables, tombstones, schema = dict(image.tables), dict(image.tombstones), image.schema
    for change in changes:
        if isinstance(change, AcceptSchema):
            schema = change.schema
            continue
        removed = _removed(image, change)
        if removed is not None:
            del tables[removed.table_key]
            tombstones[removed.table_key] = removed.table_version + 1
        placed = _placed(image, change, branch)
        if placed is not None:
            tables[placed.table_key] = placed
    return Image(dict(sorted(tables.items())), tombstones, schema, image.commits)


def add_commit(image: Image, commit: GraphCommit, keep: int = RECENT_COMMITS.value) -> Image:
    """The image with a new head; of the commits before it only the newest stay."""
    head = image.commits[-1].graph_commit_id if image.commits else None
    if commit.parent_commit_id != head:
        raise InvariantBroken(f"the first parent of a commit is the head {head}")
    if keep < 1:
        raise InvariantBroken("an image keeps its head commit")
    return replace(image, commits=(*image.commits, commit)[-keep:])


def check_changes(changes: Iterable[Change], image: Image, *, now: float) -> None:
    """Refuse what was staged on another version than the current one, or too long ago.

    The files of a version that nothing names are swept after a grace period; what is published
    within the lease is safe from that.

    Raises:
        PreconditionFailed: prepare again.
        InvariantBroken: a change does not say what it was staged on, and since when.
    """
    for change in changes:
        update = change.update if isinstance(change, RenameTable) else change
        if isinstance(update, RegisterTable | UpdateTable | AdoptTable):
            _check_age(update, now)
        if isinstance(update, UpdateTable):
            old_key = change.old_key if isinstance(change, RenameTable) else update.table_key
            _check_base(update, image.tables.get(old_key))


def _check_age(change: RegisterTable | UpdateTable | AdoptTable, now: float) -> None:
    lease = PUBLISH_LEASE.read()
    if change.staged_since is None:
        raise InvariantBroken("a change says since when it is staged")
    age = now - change.staged_since
    if not abs(age) <= lease:
        keys = ", ".join(_keys(change))
        raise PreconditionFailed(f"the age of {keys}", f"within {lease:g} s", f"{age:.0f} s")


def _check_base(change: UpdateTable, entry: TableEntry | None) -> None:
    if change.base_physical_version is None:
        raise InvariantBroken("a change says which version it is staged on")
    if entry is not None and entry.physical_version != change.base_physical_version:
        raise PreconditionFailed(
            f"the base of {change.table_key}",
            str(change.base_physical_version),
            str(entry.physical_version),
        )


def touched(changes: Iterable[Change]) -> frozenset[str]:
    """The keys of every table the changes write; of a renamed one both."""
    return frozenset(table_key for change in changes for table_key in _keys(change))


def _keys(change: Change) -> tuple[str, ...]:
    match change:
        case RegisterTable() | UpdateTable() | TombstoneTable():
            return (change.table_key,)
        case AdoptTable():
            return (change.entry.table_key,)
        case RenameTable():
            return (change.old_key, change.new_key)
        case _:
            return ()


def _check_once(changes: tuple[Change, ...]) -> None:
    # The order of changes would matter otherwise, and one would silently undo another.
    counts = Counter(table_key for change in changes for table_key in _keys(change))
    repeated = sorted(table_key for table_key, count in counts.items() if count > 1)
    if repeated:
        raise InvariantBroken(f"a commit changes a table once, unlike {', '.join(repeated)}")
    if sum(isinstance(change, AcceptSchema) for change in changes) > 1:
        raise InvariantBroken("a commit accepts one schema")


def _removed(image: Image, change: Change) -> TableEntry | None:
    match change:
        case TombstoneTable():
            return _existing(image, change.table_key)
        case RenameTable():
            return _existing(image, change.old_key)
        case _:
            return None


def _placed(image: Image, change: Change, branch: str | None) -> TableEntry | None:
    match change:
        case RegisterTable():
            return _registered(image, change, branch)
        case UpdateTable():
            return _updated(_existing(image, change.table_key), change, branch)
        case AdoptTable():
            version = image.version_of(change.entry.table_key) + 1
            return replace(change.entry, table_version=version, operation=TableOperation.ADOPT)
        case RenameTable():
            return _renamed(image, change, branch)
        case _:
            return None


def _registered(image: Image, change: RegisterTable, branch: str | None) -> TableEntry:
    _check_free(image, change.table_key)
    return TableEntry(
        table_key=change.table_key,
        location=change.location,
        table_version=image.version_of(change.table_key) + 1,
        physical_version=change.physical_version,
        branch=branch,
        row_count=change.row_count,
        fragment_count=change.fragment_count,
        operation=TableOperation.CREATE,
    )


def _updated(entry: TableEntry, change: UpdateTable, branch: str | None) -> TableEntry:
    return replace(
        entry,
        table_version=entry.table_version + 1,
        physical_version=change.physical_version,
        branch=branch,
        row_count=change.row_count,
        fragment_count=change.fragment_count,
        operation=change.operation,
    )


def _renamed(image: Image, change: RenameTable, branch: str | None) -> TableEntry:
    _check_free(image, change.new_key)
    moved = replace(
        _existing(image, change.old_key),
        table_key=change.new_key,
        table_version=image.version_of(change.new_key) + 1,
        operation=TableOperation.SCHEMA,
    )
    if change.update is None:
        return moved
    if change.update.table_key != change.new_key:
        raise InvariantBroken(f"a rename to {change.new_key} updates that table only")
    return replace(_updated(moved, change.update, branch), table_version=moved.table_version)


def _existing(image: Image, table_key: str) -> TableEntry:
    entry = image.tables.get(table_key)
    if entry is None:
        known = ", ".join(image.tables) or "none"
        raise TableNotFound(f"no table `{table_key}` to change", hint=f"tables there: {known}")
    return entry


def _check_free(image: Image, table_key: str) -> None:
    if table_key in image.tables:
        raise AlreadyExists(f"a table `{table_key}` exists")
