"""A catalog image as Arrow rows and back. Nothing is lost, and the order of rows means nothing.

Rows of the current format only: older ones pass through `migrations.upgrade_rows` first. What no
release of ours can have written is refused rather than read around.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph_core.constants import INTERNAL_SCHEMA_VERSION
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.manifest.fields import Fields, damaged, json_text
from omnigraph_core.manifest.fold import PublishedVersion, Registration, Tombstone, fold_tables
from omnigraph_core.manifest.image import MAIN, AcceptedSchema, GraphCommit, Image, TableOperation
from omnigraph_core.manifest.migrations import PRIMARY_KEY, PRIMARY_KEY_COLUMN, STAMP_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.manifest.image import TableEntry

    Row = Mapping[str, Any]

IMAGE_SCHEMA: Final = pa.schema(
    [
        pa.field(PRIMARY_KEY_COLUMN, pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string(), nullable=False),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ],
    metadata={STAMP_KEY: str(INTERNAL_SCHEMA_VERSION.value)},
)

_SCHEMA_ID: Final = "graph_schema"
_NO_TABLE: Final = ""
_DETACHED: Final = 2**63
_MAX_VERSION: Final = 2**64 - 1


class RowKind(StrEnum):
    TABLE = "table"
    TABLE_VERSION = "table_version"
    TABLE_TOMBSTONE = "table_tombstone"
    GRAPH_COMMIT = "graph_commit"
    GRAPH_HEAD = "graph_head"
    GRAPH_SCHEMA = "graph_schema"


def encode_image(image: Image) -> pa.Table:
    """The rows of a catalog version.

    Raises:
        InvariantBroken: the rows would not read back as this image.
    """
    _check_consistent(image)
    return pa.Table.from_pylist(list(_encode(image)), schema=IMAGE_SCHEMA)


def decode_image(rows: pa.Table, *, where: str) -> Image:
    """The image that rows of the current format hold.

    Raises:
        StorageError: they are damaged; says how.
    """
    _check_columns(rows.schema, where)
    by_kind = _sort_out(rows, where)
    folded = fold_tables(
        map(_decode_registration, by_kind[RowKind.TABLE]),
        map(_decode_version, by_kind[RowKind.TABLE_VERSION]),
        map(_decode_tombstone, by_kind[RowKind.TABLE_TOMBSTONE]),
        where=where,
    )
    commits = _decode_commits(by_kind[RowKind.GRAPH_COMMIT], where)
    _check_head(_only(by_kind, RowKind.GRAPH_HEAD, where), commits[-1])
    schema = _decode_schema(_only(by_kind, RowKind.GRAPH_SCHEMA, where))
    return Image(folded.tables, folded.tombstones, schema, commits)


def _check_consistent(image: Image) -> None:
    if not image.commits:
        raise InvariantBroken("an image has a head commit")
    ids = [commit.graph_commit_id for commit in image.commits]
    if len(set(ids)) != len(ids):
        raise InvariantBroken("a commit is in an image once")
    for table_key, entry in image.tables.items():
        if table_key != entry.table_key:
            raise InvariantBroken(f"{entry.table_key} is kept under its own key, not {table_key}")
        if entry.table_version <= image.tombstones.get(table_key, 0):
            raise InvariantBroken(f"{table_key} is newer than its tombstone")


def _encode(image: Image) -> Iterator[Row]:
    for table_key in sorted(image.tables):
        yield _encode_registration(image.tables[table_key])
        yield _encode_version(image.tables[table_key])
    for table_key in sorted(image.tombstones):
        yield _encode_tombstone(table_key, image.tombstones[table_key])
    for position, commit in enumerate(image.commits):
        yield _encode_commit(commit, position)
    yield _encode_head(image.head)
    yield _encode_schema(image.schema)


def _encode_registration(entry: TableEntry) -> Row:
    return {
        "object_id": entry.table_key,
        "object_type": RowKind.TABLE,
        "location": entry.location,
        "table_key": entry.table_key,
    }


def _encode_version(entry: TableEntry) -> Row:
    metadata = {
        "lance_version": str(entry.physical_version),
        "manifest_path": _manifest_path(entry.location, entry.physical_version),
        "naming_scheme": "V2",
        "fragments": entry.fragment_count,
        "operation": entry.operation,
    }
    return {
        "object_id": _version_id(entry.table_key, entry.table_version),
        "object_type": RowKind.TABLE_VERSION,
        "metadata": json_text(metadata),
        "table_key": entry.table_key,
        "table_version": entry.table_version,
        "table_branch": entry.branch,
        "row_count": entry.row_count,
    }


def _manifest_path(location: str, physical_version: int) -> str:
    is_detached = physical_version >= _DETACHED
    name = f"d{physical_version}" if is_detached else f"{_MAX_VERSION - physical_version:020d}"
    return f"{location}/_versions/{name}.manifest"


def _encode_tombstone(table_key: str, version: int) -> Row:
    return {
        "object_id": _tombstone_id(table_key, version),
        "object_type": RowKind.TABLE_TOMBSTONE,
        "table_key": table_key,
        "table_version": version,
    }


def _encode_commit(commit: GraphCommit, position: int) -> Row:
    metadata = {
        "position": position,
        "parent": commit.parent_commit_id,
        "merged_parent": commit.merged_parent_commit_id,
        "actor": commit.actor_id,
        "created_at": commit.created_at,
        "incarnation": commit.incarnation,
        "operation": commit.operation,
        "idempotency_key": commit.idempotency_key,
        "request_digest": commit.request_digest,
        "summary": commit.summary,
    }
    return {
        "object_id": commit.graph_commit_id,
        "object_type": RowKind.GRAPH_COMMIT,
        "metadata": json_text(metadata),
        "table_key": _NO_TABLE,
        "table_version": commit.manifest_version,
        "table_branch": commit.manifest_branch,
    }


def _encode_head(head: GraphCommit) -> Row:
    return {
        "object_id": _head_id(head),
        "object_type": RowKind.GRAPH_HEAD,
        "metadata": json_text({"head_commit_id": head.graph_commit_id}),
        "table_key": _NO_TABLE,
    }


def _encode_schema(schema: AcceptedSchema) -> Row:
    metadata = {"source": schema.source, "document": schema.document, "hash": schema.hash}
    return {
        "object_id": _SCHEMA_ID,
        "object_type": RowKind.GRAPH_SCHEMA,
        "metadata": json_text(metadata),
        "table_key": _NO_TABLE,
    }


def _version_id(table_key: str, version: int) -> str:
    return f"{table_key}${version:020d}"


def _tombstone_id(table_key: str, version: int) -> str:
    return f"{table_key}$tombstone${version:020d}"


def _head_id(head: GraphCommit) -> str:
    # The branch that made the head: on a new branch that is still the one it was forked from.
    return f"graph_head:{head.manifest_branch or MAIN}"


def _check_columns(schema: pa.Schema, where: str) -> None:
    expected = {field.name: str(field.type) for field in IMAGE_SCHEMA}
    found = {field.name: str(field.type) for field in schema}
    if found != expected or len(schema) != len(expected):
        columns = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise damaged(where, f"its columns are {columns or 'none'}")


def _sort_out(rows: pa.Table, where: str) -> Mapping[RowKind, list[Fields]]:
    by_kind: dict[RowKind, list[Fields]] = {kind: [] for kind in RowKind}
    for values in rows.to_pylist():
        row = Fields(values, f"row `{values['object_id']}`", where)
        by_kind[row.member("object_type", RowKind)].append(row)
    return by_kind


def _only(by_kind: Mapping[RowKind, list[Fields]], kind: RowKind, where: str) -> Fields:
    found = by_kind[kind]
    if len(found) != 1:
        raise damaged(where, f"it has {len(found)} rows of type {kind}, expected one")
    return found[0]


def _decode_registration(row: Fields) -> Registration:
    row.check("object_id", row.text("table_key"))
    return Registration(row.text("table_key"), row.text("location"))


def _decode_version(row: Fields) -> PublishedVersion:
    table_key, version = row.text("table_key"), row.whole("table_version", least=1)
    row.check("object_id", _version_id(table_key, version))
    metadata = row.json("metadata")
    return PublishedVersion(
        table_key=table_key,
        table_version=version,
        physical_version=metadata.decimal("lance_version"),
        branch=row.optional_text("table_branch"),
        row_count=row.whole("row_count"),
        fragment_count=metadata.whole("fragments"),
        operation=metadata.member("operation", TableOperation),
    )


def _decode_tombstone(row: Fields) -> Tombstone:
    table_key, version = row.text("table_key"), row.whole("table_version", least=1)
    row.check("object_id", _tombstone_id(table_key, version))
    return Tombstone(table_key, version)


def _decode_commits(rows: Iterable[Fields], where: str) -> tuple[GraphCommit, ...]:
    # Positions are explicit because nothing else gives the order: inherited commits carry the
    # versions of the branch they were made on, and clocks of writers differ.
    found = sorted(
        ((row.json("metadata").whole("position"), _decode_commit(row)) for row in rows),
        key=lambda item: item[0],
    )
    if not found:
        raise damaged(where, f"it has no row of type {RowKind.GRAPH_COMMIT}")
    if [position for position, _ in found] != list(range(len(found))):
        raise damaged(where, "a commit is missing or there twice")
    return tuple(commit for _, commit in found)


def _decode_commit(row: Fields) -> GraphCommit:
    metadata = row.json("metadata")
    return GraphCommit(
        graph_commit_id=row.text("object_id"),
        manifest_branch=row.optional_text("table_branch"),
        incarnation=metadata.text("incarnation"),
        manifest_version=row.whole("table_version", least=1),
        parent_commit_id=metadata.optional_text("parent"),
        merged_parent_commit_id=metadata.optional_text("merged_parent"),
        actor_id=metadata.optional_text("actor"),
        created_at=metadata.whole("created_at"),
        operation=metadata.text("operation"),
        idempotency_key=metadata.optional_text("idempotency_key"),
        request_digest=metadata.optional_text("request_digest"),
        summary=metadata.optional_text("summary"),
    )


def _check_head(row: Fields, last: GraphCommit) -> None:
    row.check("object_id", _head_id(last))
    row.json("metadata").check("head_commit_id", last.graph_commit_id)


def _decode_schema(row: Fields) -> AcceptedSchema:
    row.check("object_id", _SCHEMA_ID)
    metadata = row.json("metadata")
    return AcceptedSchema(
        source=metadata.text("source"),
        document=metadata.text("document"),
        hash=metadata.text("hash"),
    )
