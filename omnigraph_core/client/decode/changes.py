"""Diffs, pages of the change feed and merges from documents; importing this loads no storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.decode.commits import decode_commit, decode_landed
from omnigraph_core.client.decode.reading import every, maybe
from omnigraph_core.diff.model import (
    ChangeOp,
    ChangePage,
    ChangeSet,
    ChangeStats,
    CommitChanges,
    Endpoints,
    EntityChange,
    TableChanges,
)
from omnigraph_core.merge.model import (
    MergeConflict,
    MergeConflictKind,
    MergeOutcome,
    MergeResult,
    TableDisposition,
    TableMerge,
)
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.client.decode.reading import Document
    from omnigraph_core.manifest.image import GraphCommit


def decode_changes(document: Document) -> ChangeSet:
    return ChangeSet(
        from_version=document["from_version"],
        to_version=document["to_version"],
        from_commit_id=document["from_commit_id"],
        to_commit_id=document["to_commit_id"],
        branch=document["branch"],
        changes=every(decode_change, document.get("changes", ())),
        stats=_decode_stats(document["stats"]),
        is_complete=document["complete"],
        spark=document.get("spark"),
    )


def decode_change(document: Document) -> EntityChange:
    return EntityChange(
        table_key=document["table_key"],
        kind=EntityKind(document["kind"]),
        type_name=document["type_name"],
        id=document["id"],
        op=ChangeOp(document["op"]),
        manifest_version=document["manifest_version"],
        endpoints=maybe(
            lambda ends: Endpoints(ends["src"], ends["dst"]), document.get("endpoints")
        ),
        before=document.get("before"),
        after=document.get("after"),
        properties=tuple(document.get("properties", ())),
    )


def _decode_stats(document: Document) -> ChangeStats:
    return ChangeStats(
        inserts=document["inserts"],
        updates=document["updates"],
        deletes=document["deletes"],
        types_affected=tuple(document["types_affected"]),
        tables=every(_decode_counts, document["tables"]),
        schema_steps=tuple(document["schema_steps"]),
    )


def _decode_counts(document: Document) -> TableChanges:
    return TableChanges(
        document["table_key"], document["inserts"], document["updates"], document["deletes"]
    )


def decode_page(document: Document) -> ChangePage:
    return ChangePage(
        blocks=every(_decode_block, document["blocks"]),
        cursor=document["cursor"],
        is_caught_up=document["caught_up"],
    )


def _decode_block(document: Document) -> CommitChanges:
    return CommitChanges(decode_commit(document["commit"]), decode_changes(document["changes"]))


def decode_merge(document: Document, fetch: Callable[[str], GraphCommit]) -> MergeResult:
    return MergeResult(
        source=document["source"],
        target=document["target"],
        outcome=MergeOutcome(document["outcome"]),
        base_commit_id=document["base_commit_id"],
        source_commit_id=document["source_commit_id"],
        target_commit_id=document["target_commit_id"],
        commit=decode_landed(document, fetch),
        tables=every(_decode_table, document["tables"]),
        conflicts=every(_decode_conflict, document["merge_conflicts"]),
        resolved=document["resolved"],
        is_schema_changed=document["schema_changed"],
        is_dry_run=document["dry_run"],
        is_source_deleted=document["source_deleted"],
        source_note=document.get("source_note"),
        spark=document.get("spark"),
    )


def _decode_table(document: Document) -> TableMerge:
    return TableMerge(
        table_key=document["table_key"],
        disposition=TableDisposition(document["disposition"]),
        inserted=document["inserted"],
        updated=document["updated"],
        deleted=document["deleted"],
        conflicts=document["conflicts"],
    )


def _decode_conflict(document: Document) -> MergeConflict:
    return MergeConflict(
        table_key=document["table_key"],
        row_id=document["row_id"],
        kind=MergeConflictKind(document["kind"]),
        message=document["message"],
        properties=tuple(document.get("properties", ())),
        base=document.get("base"),
        ours=document.get("ours"),
        theirs=document.get("theirs"),
        has_rows="ours" in document,
    )
