"""Branches, tags and runs from documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.decode.reading import maybe
from omnigraph_core.history.refs import BranchRef, ForkPoint, Tag
from omnigraph_core.history.runs import RunRecord, RunStatus

if TYPE_CHECKING:
    from omnigraph_core.client.decode.reading import Document


def decode_branch(document: Document) -> BranchRef:
    return BranchRef(
        branch=document["name"],
        incarnation=document["incarnation"],
        manifest=document["manifest"],
        forked_from=maybe(_decode_fork, document["forked_from"]),
        created_at=document["created_at"],
        actor=document["actor_id"],
    )


def _decode_fork(document: Document) -> ForkPoint:
    return ForkPoint(
        branch=document["branch"],
        incarnation=document["incarnation"],
        manifest_version=document["manifest_version"],
        commit_id=document["commit_id"],
    )


def decode_tag(document: Document) -> Tag:
    return Tag(
        tag=document["name"],
        commit_id=document["commit_id"],
        branch=document["branch"],
        incarnation=document.get("incarnation") or "",
        manifest_version=document["manifest_version"],
        created_at=document["created_at"],
        actor=document["actor_id"],
    )


def decode_run(document: Document) -> RunRecord:
    return RunRecord(
        run_id=document["run_id"],
        target_branch=document["target_branch"],
        run_branch=document["run_branch"],
        base_snapshot_id=document["base_snapshot_id"],
        base_manifest_version=document["base_manifest_version"],
        operation_hash=document["operation_hash"],
        actor_id=document["actor_id"],
        status=RunStatus(document["status"]),
        published_snapshot_id=document["published_snapshot_id"],
        created_at=document["created_at"],
        updated_at=document["updated_at"],
        is_expired=document.get("is_expired", False),
    )
