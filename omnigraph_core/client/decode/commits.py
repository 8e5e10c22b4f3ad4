"""Commits and snapshots from documents; importing this loads no storage.

Where an answer names a commit and no more, the rest of it is fetched when somebody asks for it. The
key of a commit, with the digest and the result kept for it, stays with the server.
"""

from __future__ import annotations

import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.manifest.image import (
    MAIN,
    AcceptedSchema,
    GraphCommit,
    Image,
    TableEntry,
    TableOperation,
)
from omnigraph_core.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.client.decode.reading import Document


def decode_commit(document: Document) -> GraphCommit:
    """A commit; of one on another branch than main its incarnation is empty if it is not told."""
    branch = document["manifest_branch"]
    return GraphCommit(
        graph_commit_id=document["graph_commit_id"],
        manifest_branch=branch,
        incarnation=document.get("incarnation") or (MAIN if branch is None else ""),
        manifest_version=document["manifest_version"],
        parent_commit_id=document["parent_commit_id"],
        merged_parent_commit_id=document["merged_parent_commit_id"],
        actor_id=document["actor_id"],
        created_at=document["created_at"],
        operation=document.get("operation") or "",
    )


def decode_landed(document: Document, fetch: Callable[[str], GraphCommit]) -> GraphCommit | None:
    """The commit an answer to a write tells in full, by id or not at all."""
    if document.get("commit") is not None:
        return decode_commit(document["commit"])
    commit_id = document.get("commit_id")
    return None if commit_id is None else NamedCommit(commit_id, fetch)


class NamedCommit(GraphCommit):
    """A commit that is known by its id; whatever else is asked for is fetched once."""

    __slots__ = ("_fetch",)
    _fetch: Callable[[str], GraphCommit]

    def __init__(self, commit_id: str, fetch: Callable[[str], GraphCommit]) -> None:
        object.__setattr__(self, "graph_commit_id", commit_id)
        object.__setattr__(self, "_fetch", fetch)

    def __getattr__(self, name: str) -> Any:
        """Called for slots that are still empty."""
        if name not in _COMMIT_FIELDS:
            raise AttributeError(name)
        _fill(self, self._fetch(self.graph_commit_id), _COMMIT_FIELDS)
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphCommit) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        return f"GraphCommit({self.graph_commit_id!r}, …)"


_COMMIT_FIELDS: Final = tuple(item.name for item in fields(GraphCommit))


def _values(commit: GraphCommit) -> tuple[object, ...]:
    return tuple(getattr(commit, name) for name in _COMMIT_FIELDS)


def _fill(value: object, whole: object, names: tuple[str, ...]) -> None:
    for name in names:
        object.__setattr__(value, name, getattr(whole, name))


def decode_snapshot(document: Document, fetch_schema: Callable[[str], AcceptedSchema]) -> Snapshot:
    """A snapshot; its schema is fetched when it is asked for.

    Args:
        fetch_schema: the schema of a commit.
    """
    commit = decode_commit(document["commit"])
    tables = [_decode_table(item) for item in document["tables"]]
    image = _TablesOfImage(
        {entry.table_key: entry for entry in tables},
        commit,
        lambda: fetch_schema(commit.graph_commit_id),
    )
    return Snapshot(
        document["branch"], document["incarnation"], document["manifest_version"], image
    )


def _decode_table(document: Document) -> TableEntry:
    return TableEntry(
        table_key=document["table_key"],
        location=document["table_path"],
        table_version=document["table_version"],
        physical_version=int(document["physical_version"]),
        branch=document["table_branch"],
        row_count=document["row_count"],
        fragment_count=document["fragment_count"],
        operation=TableOperation(document["operation"]),
    )


class _TablesOfImage(Image):
    """An image whose schema is still to be fetched; of commits it has the head."""

    __slots__ = ("_fetch",)
    _fetch: Callable[[], AcceptedSchema]

    def __init__(
        self,
        tables: dict[str, TableEntry],
        head: GraphCommit,
        fetch: Callable[[], AcceptedSchema],
    ) -> None:
        known = {"tables": tables, "tombstones": {}, "commits": (head,), "_fetch": fetch}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name != "schema":
            raise AttributeError(name)
        object.__setattr__(self, name, self._fetch())
        return self.schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and (self.tables, self.schema, self.head) == (
            other.tables,
            other.schema,
            other.head,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Image({', '.join(self.tables)})"


class NamedSnapshot(Snapshot):
    """What rows were read from: branch, version and commit; the rest is fetched if asked for."""

    __slots__ = ("_commit", "_fetch")
    _commit: GraphCommit
    _fetch: Callable[[str, int], Snapshot]

    def __init__(
        self,
        branch: str,
        manifest_version: int,
        commit: GraphCommit,
        fetch: Callable[[str, int], Snapshot],
    ) -> None:
        known = {
            "branch": branch,
            "manifest_version": manifest_version,
            "read_at": time.time(),
            "_commit": commit,
            "_fetch": fetch,
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in ("incarnation", "image"):
            raise AttributeError(name)
        _fill(self, self._fetch(self.branch, self.manifest_version), ("incarnation", "image"))
        return getattr(self, name)

    @property
    def commit(self) -> GraphCommit:
        return self._commit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and _place(self) == _place(other)

    def __hash__(self) -> int:
        return Snapshot.__hash__(self)

    def __repr__(self) -> str:
        commit_id = self._commit.graph_commit_id
        return f"Snapshot({self.branch!r}, {self.manifest_version}, {commit_id!r})"


def _place(snapshot: Snapshot) -> tuple[object, ...]:
    """What tells a snapshot from all others of its graph."""
    return snapshot.branch, snapshot.manifest_version, snapshot.commit.graph_commit_id
