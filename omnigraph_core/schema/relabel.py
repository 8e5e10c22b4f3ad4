"""An earlier document in the names of a later schema, and the plan between two of any distance.

What continues comes in as a `Continuity`. The planner goes by names and by hints, which tell of one
migration only; once both sides use one set of names it sees what several of them came to, also
where a name has meanwhile gone to something else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.schema.catalog import EdgeType, InterfaceType, NodeType
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document.catalog import catalog_from_document
from omnigraph_core.schema.document.match import RENAME_FROM
from omnigraph_core.schema.migrate import plan_migration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.schema.ast import Annotation
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.continuity import Continuity
    from omnigraph_core.schema.document.model import (
        DocumentConstraint,
        DocumentProperty,
        DocumentType,
        Reference,
        SchemaDocument,
    )
    from omnigraph_core.schema.migrate import MigrationPlan

_Table = TypeVar("_Table", NodeType, EdgeType)
_Any = TypeVar("_Any", InterfaceType, NodeType, EdgeType)


def plan_continued(
    before: SchemaDocument, after: SchemaDocument, *, common: SchemaDocument | None = None
) -> MigrationPlan:
    """What happens to the rows of one document on the way to another, all in later names.

    Args:
        common: the newest document both descend from, `before` if not given.
    """
    found = continuity(before, after, common=common)
    return plan_relabelled(relabelled(before, found), catalog_from_document(after))


def plan_relabelled(before: SchemaDocument, later: Catalog) -> MigrationPlan:
    """The plan between two that use the same names already."""
    desired = replace(
        later,
        interfaces={name: _unhinted_columns(item) for name, item in later.interfaces.items()},
        nodes={name: _unhinted_type(item) for name, item in later.nodes.items()},
        edges={name: _unhinted_type(item) for name, item in later.edges.items()},
    )
    return plan_migration(before, desired)


def _unhinted_type(item: _Table) -> _Table:
    return replace(_unhinted_columns(item), annotations=_unhinted(item.annotations))


def _unhinted_columns(item: _Any) -> _Any:
    return replace(
        item,
        properties={
            name: replace(prop, annotations=_unhinted(prop.annotations))
            for name, prop in item.properties.items()
        },
    )


def _unhinted(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    return tuple(item for item in annotations if item.name != RENAME_FROM)


def relabelled(before: SchemaDocument, found: Continuity) -> SchemaDocument:
    """A document as if it had always had the later names, without what does not continue."""
    return replace(
        before,
        interfaces=tuple(
            replace(
                item,
                name=found.interfaces[item.name],
                properties=_properties(item, found.properties["interface", item.name]),
            )
            for item in before.interfaces
            if item.name in found.interfaces
        ),
        nodes=tuple(
            replace(
                item,
                name=found.nodes[item.name],
                annotations=_unhinted(item.annotations),
                properties=_properties(item, found.properties["node", item.name]),
                constraints=_constraints(item.constraints, found.properties["node", item.name]),
            )
            for item in before.nodes
            if item.name in found.nodes
        ),
        edges=tuple(
            replace(
                item,
                name=found.edges[item.name],
                annotations=_unhinted(item.annotations),
                properties=_properties(item, found.properties["edge", item.name]),
                constraints=_constraints(item.constraints, found.properties["edge", item.name]),
                from_type=_renamed(item.from_type, found.nodes),
                to_type=_renamed(item.to_type, found.nodes),
            )
            for item in before.edges
            if item.name in found.edges
        ),
    )


def _properties(item: DocumentType, renamed: Mapping[str, str]) -> tuple[DocumentProperty, ...]:
    return tuple(
        replace(
            prop,
            name=renamed[prop.name],
            annotations=_unhinted(prop.annotations),
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
