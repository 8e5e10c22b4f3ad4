"""How the schemas of two snapshots differ: what continues under which name, and lines that say so.

Ids of types and properties tell renames, but only those drawn before the snapshots' lines of
history parted: the schema of their nearest common commit says which those are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.diagnostics import Name
from omnigraph_core.errors import CommitNotFound, SnapshotNotFound
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.ancestry import merge_base
from omnigraph_core.history.snapshots import state_at_commit
from omnigraph_core.schema.ast import Annotation, Argument, ArgumentKind
from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document import document_from_json
from omnigraph_core.schema.document.match import RENAME_FROM
from omnigraph_core.schema.migrate import plan_migration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import AcceptedSchema, GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog, InterfaceType, PropertyDef
    from omnigraph_core.schema.continuity import Continuity
    from omnigraph_core.schema.document import SchemaDocument

T = TypeVar("T", NodeType, EdgeType)

_NO_IDS: Final = 0
"""A limit of ids below which there is none."""


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """`continuity` is None, and there are no steps, where both have one schema."""

    continuity: Continuity | None = None
    steps: tuple[str, ...] = ()


def compare_schemas(
    context: GraphContext, before: Snapshot | None, after: Snapshot
) -> SchemaDifference:
    """What continues from one snapshot to the other, and a line for each difference."""
    if before is None or before.schema.hash == after.schema.hash:
        return SchemaDifference()
    old, new = document_of(before.schema), document_of(after.schema)
    common = _common_document(context, before, after) or replace(old, next_identity_id=_NO_IDS)
    found = continuity(old, new, common=common)
    return SchemaDifference(found, schema_steps(old, accepted_catalog(after.schema), found))


def document_of(schema: AcceptedSchema) -> SchemaDocument:
    return document_from_json(json.loads(schema.document))


def schema_steps(before: SchemaDocument, after: Catalog, found: Continuity) -> tuple[str, ...]:
    """The steps of a migration from one to the other, on a line each.

    Hints in the later schema tell renames of one migration only; here they say what continues.
    """
    desired = replace(
        after,
        interfaces={
            name: _hinted_interface(item, found) for name, item in after.interfaces.items()
        },
        nodes={
            name: _hinted(item, "node", found.nodes, found) for name, item in after.nodes.items()
        },
        edges={
            name: _hinted(item, "edge", found.edges, found) for name, item in after.edges.items()
        },
    )
    return tuple(step.describe() for step in plan_migration(before, desired).steps)


def _common_document(
    context: GraphContext, before: Snapshot, after: Snapshot
) -> SchemaDocument | None:
    """The schema of the nearest common commit; None if there is none, or cleanup has taken it."""
    carried = {
        commit.graph_commit_id: commit
        for snapshot in (before, after)
        for commit in snapshot.image.commits
    }

    def lookup(commit_id: str) -> GraphCommit | None:
        try:
            return carried.get(commit_id) or context.commits.find(commit_id)
        except CommitNotFound:
            return None

    base = merge_base(before.commit.graph_commit_id, after.commit.graph_commit_id, lookup)
    for snapshot in (before, after):
        if snapshot.commit.graph_commit_id == base:
            return document_of(snapshot.schema)
    commit = None if base is None else lookup(base)
    if commit is None:
        return None
    try:
        return document_of(state_at_commit(context.store, commit).snapshot.schema)
    except SnapshotNotFound:
        return None


def _hinted_interface(item: InterfaceType, found: Continuity) -> InterfaceType:
    earlier = _earlier(item.name, found.interfaces)
    return replace(
        item, properties=_hinted_properties(item.properties, "interface", earlier, found)
    )


def _hinted(item: T, kind: str, types: Mapping[str, str], found: Continuity) -> T:
    earlier = _earlier(item.name, types)
    return replace(
        item,
        properties=_hinted_properties(item.properties, kind, earlier, found),
        annotations=_with_hint(item.annotations, item.name, earlier),
    )


def _earlier(name: str, continued: Mapping[str, str]) -> str | None:
    return next((old for old, new in continued.items() if new == name), None)


def _hinted_properties(
    properties: Mapping[str, PropertyDef], kind: str, earlier: str | None, found: Continuity
) -> dict[str, PropertyDef]:
    renamed = {} if earlier is None else found.properties[kind, earlier]
    return {
        name: replace(item, annotations=_with_hint(item.annotations, name, _earlier(name, renamed)))
        for name, item in properties.items()
    }


def _with_hint(
    annotations: tuple[Annotation, ...], name: str, earlier: str | None
) -> tuple[Annotation, ...]:
    kept = tuple(item for item in annotations if item.name != RENAME_FROM)
    if earlier is None or earlier == name:
        return kept
    return (*kept, Annotation(Name(RENAME_FROM), Argument(ArgumentKind.STRING, earlier)))
