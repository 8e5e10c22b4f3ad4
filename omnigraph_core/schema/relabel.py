"""An earlier document in the names of a later schema, and the plan between two of any distance.

What continues comes in as a `Continuity`. The planner goes by names and by hints, which tell of one
migration only; once both sides use one set of names it sees what several of them came to, also
where a name has meanwhile gone to something else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document.catalog import catalog_from_document
from omnigraph_core.schema.migrate import plan_migration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.schema.catalog import Catalog, PropertyDef
    from omnigraph_core.schema.continuity import Continuity
    from omnigraph_core.schema.document.model import (
        DocumentConstraint,
        DocumentProperty,
        DocumentType,
        Reference,
        SchemaDocument,
    )
    from omnigraph_core.schema.migrate import MigrationPlan


def plan_continued(
    before: SchemaDocument, after: SchemaDocument, *, common: SchemaDocument | None = None
) -> MigrationPlan:
    """What happens to the rows of one document on the way to another, all in later names.

    Args:
        common: the newest document both descend from, `before` if not given.
    """
    later = catalog_from_document(after)
    found = continuity(before, after, common=common)
    return plan_migration(relabelled(before, found, later), later)


def relabelled(before: SchemaDocument, found: Continuity, later: Catalog) -> SchemaDocument:
    """A document as if it had always had the later names, without what does not continue.

    Hints are the later ones, so all of them count as followed.
    """
    return replace(
        before,
        interfaces=tuple(
            replace(
                item,
                name=(name := found.interfaces[item.name]),
                properties=_properties(item, "interface", found, later.interfaces[name].properties),
            )
            for item in before.interfaces
            if item.name in found.interfaces
        ),
        nodes=tuple(
            replace(
                item,
                name=(name := found.nodes[item.name]),
                annotations=later.nodes[name].annotations,
                properties=_properties(item, "node", found, later.nodes[name].properties),
                constraints=_constraints(item.constraints, found.properties["node", item.name]),
            )
            for item in before.nodes
            if item.name in found.nodes
        ),
        edges=tuple(
            replace(
                item,
                name=(name := found.edges[item.name]),
                annotations=later.edges[name].annotations,
                properties=_properties(item, "edge", found, later.edges[name].properties),
                constraints=_constraints(item.constraints, found.properties["edge", item.name]),
                from_type=_renamed(item.from_type, found.nodes),
                to_type=_renamed(item.to_type, found.nodes),
            )
            for item in before.edges
            if item.name in found.edges
        ),
    )


def _properties(
    item: DocumentType, kind: str, found: Continuity, later: Mapping[str, PropertyDef]
) -> tuple[DocumentProperty, ...]:
    renamed = found.properties[kind, item.name]
    return tuple(
        replace(
            prop,
            name=(name := renamed[prop.name]),
            annotations=later[name].annotations,
            embed_source=prop.embed_source and _renamed(prop.embed_source, renamed),
        )
        for prop in item.properties
        if prop.name in renamed
    )


def _constraints(
    constraints: Iterable[DocumentConstraint], renamed: Mapping[str, str]
) -> tuple[DocumentConstraint, ...]:
    return tuple(
        replace(item, columns=tuple(_renamed(column, renamed) for column in item.columns))
        for item in constraints
    )


def _renamed(reference: Reference, names: Mapping[str, str]) -> Reference:
    return replace(reference, name=names.get(reference.name, reference.name))
