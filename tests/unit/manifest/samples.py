"""A small image and ways to vary it."""

from __future__ import annotations

from typing import Any

from omnigraph_core.manifest.image import (
    AcceptedSchema,
    GraphCommit,
    Image,
    TableEntry,
    TableOperation,
)
from omnigraph_core.manifest.snapshot import Snapshot

DETACHED = 2**63 + 5
SCHEMA = AcceptedSchema(source="node Part { name: String }", document="{}", hash="h1")


def entry(table_key: str = "node:Part", **fields: Any) -> TableEntry:
    given: dict[str, Any] = {
        "location": f"nodes/{table_key}",
        "table_version": 3,
        "physical_version": DETACHED,
        "branch": None,
        "row_count": 10,
        "fragment_count": 2,
        "operation": TableOperation.APPEND,
    }
    return TableEntry(table_key, **{**given, **fields})


def commit(number: int = 1, **fields: Any) -> GraphCommit:
    """The commit `c<number>`, child of the one before."""
    given: dict[str, Any] = {
        "manifest_branch": None,
        "incarnation": "main",
        "manifest_version": number,
        "parent_commit_id": f"c{number - 1}" if number > 1 else None,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": 1_000_000 + number,
        "operation": "load",
    }
    return GraphCommit(f"c{number}", **{**given, **fields})


def image(*entries: TableEntry, **fields: Any) -> Image:
    tables = {item.table_key: item for item in sorted(entries, key=lambda item: item.table_key)}
    given: dict[str, Any] = {"tombstones": {}, "schema": SCHEMA, "commits": (commit(1),)}
    return Image(tables, **{**given, **fields})


def snapshot(of: Image, **fields: Any) -> Snapshot:
    given: dict[str, Any] = {"branch": "main", "incarnation": "main", "manifest_version": 1}
    return Snapshot(**{**given, **fields}, image=of)
