"""What must hold between the parts of a document read from storage.

Names and ids are unique, ids lie below the counter, references name what they point at. A document
that breaks this was not written by a release of OmniGraph, or was damaged since.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ConfigError
from omnigraph_core.schema.catalog import EDGE_IMPLICIT
from omnigraph_core.schema.document.model import (
    ConstraintKind,
    DocumentEdge,
    DocumentInterface,
    DocumentNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.schema.document.model import DocumentType, Reference, SchemaDocument

_ON_EDGES: Final = frozenset({ConstraintKind.UNIQUE, ConstraintKind.INDEX})


def check_document(document: SchemaDocument) -> None:
    """Refuse a document whose parts contradict each other.

    Raises:
        ConfigError: every contradiction found.
    """
    problems = [
        *_repeated_names(document),
        *_bad_ids(document),
        *_bad_type_references(document),
        *_unmet_interfaces(document),
        *_bad_columns(document),
        *_bad_constraints(document),
    ]
    if problems:
        raise ConfigError("\n".join(f"schema document: {problem}" for problem in problems))


def _repeated_names(document: SchemaDocument) -> Iterator[str]:
    for kind, types in (
        ("interface", document.interfaces),
        ("node", document.nodes),
        ("edge", document.edges),
    ):
        yield from _repeats(kind, (item.name for item in types))
    for item in document.types:
        yield from _repeats(f"property of {item.name}", (prop.name for prop in item.properties))


def _repeats(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} `{name}` appears {times} times"


def _bad_ids(document: SchemaDocument) -> Iterator[str]:
    for identity, times in Counter(_ids(document)).items():
        if times > 1:
            yield f"id {identity} is used {times} times"
        if not 0 < identity < document.next_identity_id:
            yield f"id {identity} is not below next_identity_id {document.next_identity_id}"


def _ids(document: SchemaDocument) -> Iterator[int]:
    for item in document.types:
        yield item.type_id
        if not isinstance(item, DocumentInterface):
            yield item.table_incarnation_id
        yield from (prop.prop_id for prop in item.properties)


def _bad_type_references(document: SchemaDocument) -> Iterator[str]:
    interfaces: dict[int | None, str] = {item.type_id: item.name for item in document.interfaces}
    nodes: dict[int | None, str] = {item.type_id: item.name for item in document.nodes}
    for node in document.nodes:
        satisfied = [
            found.interface
            for prop in node.properties
            for found in prop.satisfies_interface_properties
        ]
        yield from _dangling(node.name, (*node.implements, *satisfied), interfaces)
    for edge in document.edges:
        yield from _dangling(edge.name, (edge.from_type, edge.to_type), nodes)


def _unmet_interfaces(document: SchemaDocument) -> Iterator[str]:
    declared = {
        (item.type_id, prop.prop_id): prop.name
        for item in document.interfaces
        for prop in item.properties
    }
    for node in document.nodes:
        for prop in node.properties:
            for found in prop.satisfies_interface_properties:
                reference = found.interface
                if declared.get((reference.id or 0, found.property_id)) != prop.name:
                    what = f"property id {found.property_id} of `{reference.name}`"
                    yield f"{node.name}.{prop.name} satisfies {what}, which is not there"


def _bad_columns(document: SchemaDocument) -> Iterator[str]:
    for item in document.types:
        columns: dict[int | None, str] = {prop.prop_id: prop.name for prop in item.properties}
        yield from _dangling(item.name, _column_references(item), columns)


def _column_references(item: DocumentType) -> Iterator[Reference]:
    for prop in item.properties:
        if prop.embed_source is not None:
            yield prop.embed_source
    if isinstance(item, DocumentNode | DocumentEdge):
        is_edge = isinstance(item, DocumentEdge)
        for column in (column for group in item.constraints for column in group.columns):
            if not (is_edge and column.id is None and column.name in EDGE_IMPLICIT):
                yield column


def _bad_constraints(document: SchemaDocument) -> Iterator[str]:
    tables: tuple[DocumentNode | DocumentEdge, ...] = (*document.nodes, *document.edges)
    for item in tables:
        kinds = [constraint.kind for constraint in item.constraints]
        if not all(constraint.columns for constraint in item.constraints):
            yield f"{item.name} has a constraint without columns"
        if kinds.count(ConstraintKind.KEY) > 1:
            yield f"{item.name} has more than one key"
        if isinstance(item, DocumentEdge):
            yield from (f"edge {item.name} cannot have a {k}" for k in kinds if k not in _ON_EDGES)


def _dangling(
    owner: str, references: Iterable[Reference], known: Mapping[int | None, str]
) -> Iterator[str]:
    for reference in references:
        if known.get(reference.id) != reference.name:
            yield f"{owner} refers to `{reference.name}` (id {reference.id}), which is not there"
