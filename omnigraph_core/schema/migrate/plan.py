"""From an accepted document and a desired catalog to the steps between them.

Interfaces come first, then nodes, then edges; within a type its rename, metadata, properties and
constraints; drops last, edges before the nodes they join. Equal schemas give no steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph_core.schema.document.catalog import catalog_from_document
from omnigraph_core.schema.document.match import match_types
from omnigraph_core.schema.document.shape import metadata
from omnigraph_core.schema.migrate.codes import MigrationCode
from omnigraph_core.schema.migrate.constraints import plan_constraints
from omnigraph_core.schema.migrate.pair import pair_types
from omnigraph_core.schema.migrate.properties import (
    is_redescribed,
    plan_properties,
    plan_property_drops,
)
from omnigraph_core.schema.migrate.renames import refuse_rename
from omnigraph_core.schema.migrate.steps import (
    AddType,
    ChangeInterfaces,
    DataWork,
    DropMode,
    DropType,
    MigrationPlan,
    RenameType,
    Tier,
    TypeKind,
    UnsupportedChange,
    UpdateTypeMetadata,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.schema.catalog import InterfaceType
    from omnigraph_core.schema.document.match import Match
    from omnigraph_core.schema.document.model import SchemaDocument
    from omnigraph_core.schema.migrate.pair import Pair
    from omnigraph_core.schema.migrate.properties import AnyPair
    from omnigraph_core.schema.migrate.steps import Step

_Table = TypeVar("_Table", NodeType, EdgeType)


def plan_migration(
    accepted: SchemaDocument, desired: Catalog, *, allow_data_loss: bool = False
) -> MigrationPlan:
    """The steps that turn the accepted schema into the desired one.

    Args:
        allow_data_loss: drops purge their data from every version instead of hiding it.
    """
    before = catalog_from_document(accepted)
    nodes = match_types(before.nodes, desired.nodes)
    edges = match_types(before.edges, desired.edges)
    interface_pairs = _pair_interfaces(before, desired)
    node_pairs = _pair_tables(TypeKind.NODE, before.nodes, desired.nodes, nodes)
    edge_pairs = _pair_tables(TypeKind.EDGE, before.edges, desired.edges, edges)
    pairs: tuple[AnyPair, ...] = (
        *interface_pairs.values(),
        *node_pairs.values(),
        *edge_pairs.values(),
    )
    return MigrationPlan(
        (
            *_plan_interfaces(desired, interface_pairs),
            *_plan_nodes(before, desired, nodes, node_pairs, _unresolved(interface_pairs)),
            *_plan_edges(before, desired, edges, edge_pairs, nodes),
            *(
                step
                for pair in pairs
                for step in plan_property_drops(pair, allow_data_loss=allow_data_loss)
            ),
            *_drop_tables(TypeKind.EDGE, edges, allow_data_loss=allow_data_loss),
            *_drop_tables(TypeKind.NODE, nodes, allow_data_loss=allow_data_loss),
            *_drop_interfaces(before, desired),
        )
    )


def _pair_interfaces(before: Catalog, desired: Catalog) -> dict[str, Pair[InterfaceType]]:
    return {
        name: pair_types(TypeKind.INTERFACE, before.interfaces[name], desired.interfaces[name])
        for name in sorted(desired.interfaces)
        if name in before.interfaces
    }


def _pair_tables(
    kind: TypeKind, before: Mapping[str, _Table], after: Mapping[str, _Table], match: Match
) -> dict[str, Pair[_Table]]:
    return {
        name: pair_types(kind, before[match.previous[name]], after[name])
        for name in sorted(after)
        if name in match.previous and name not in match.refused
    }


def _unresolved(pairs: Mapping[str, Pair[InterfaceType]]) -> frozenset[tuple[str, str]]:
    """Interface properties whose rename was refused: reported there, not on every node again."""
    return frozenset(
        (interface, name) for interface, pair in pairs.items() for name in pair.properties.refused
    )


def _plan_interfaces(desired: Catalog, pairs: Mapping[str, Pair[InterfaceType]]) -> Iterator[Step]:
    for name in sorted(desired.interfaces):
        if name in pairs:
            yield from plan_properties(pairs[name])
        else:
            yield AddType(TypeKind.INTERFACE, str(name))


def _plan_nodes(
    before: Catalog,
    desired: Catalog,
    match: Match,
    pairs: Mapping[str, Pair[NodeType]],
    unresolved: frozenset[tuple[str, str]],
) -> Iterator[Step]:
    for name in sorted(desired.nodes):
        if name not in pairs:
            elsewhere = {"edge": before.edges, "interface": before.interfaces}
            yield _added_or_refused(TypeKind.NODE, desired.nodes[name], match, elsewhere)
            continue
        pair = pairs[name]
        yield from _plan_header(pair)
        yield from _plan_implements(pair)
        yield from plan_properties(pair, unresolved)
        yield from plan_constraints(pair)


def _plan_edges(
    before: Catalog,
    desired: Catalog,
    match: Match,
    pairs: Mapping[str, Pair[EdgeType]],
    nodes: Match,
) -> Iterator[Step]:
    for name in sorted(desired.edges):
        if name not in pairs:
            elsewhere = {"node": before.nodes, "interface": before.interfaces}
            yield _added_or_refused(TypeKind.EDGE, desired.edges[name], match, elsewhere)
            continue
        pair = pairs[name]
        yield from _plan_header(pair)
        yield from _plan_endpoints(pair, nodes)
        yield from plan_properties(pair)
        yield from plan_constraints(pair)


def _added_or_refused(
    kind: TypeKind,
    item: NodeType | EdgeType,
    match: Match,
    elsewhere: Mapping[str, Mapping[str, object]],
) -> Step:
    if item.name not in match.refused:
        return AddType(kind, str(item.name))
    refusal = match.refused[item.name]
    return refuse_rename(f"{kind}:{item.name}", refusal, item.annotations, match.dropped, elsewhere)


def _plan_header(pair: Pair[NodeType] | Pair[EdgeType]) -> Iterator[Step]:
    if pair.before.name != pair.after.name:
        yield RenameType(pair.kind, str(pair.before.name), pair.name)
    if is_redescribed(pair.before.annotations, pair.after.annotations):
        yield UpdateTypeMetadata(pair.kind, pair.name, metadata(pair.after.annotations))


def _plan_implements(pair: Pair[NodeType]) -> Iterator[Step]:
    before, after = set(pair.before.implements), set(pair.after.implements)
    if before != after:
        added, removed = tuple(sorted(after - before)), tuple(sorted(before - after))
        yield ChangeInterfaces(pair.kind, pair.name, added, removed)


def _plan_endpoints(pair: Pair[EdgeType], nodes: Match) -> Iterator[Step]:
    sides = (
        ("source", pair.before.source, pair.after.source),
        ("target", pair.before.target, pair.after.target),
    )
    for side, old, new in sides:
        if nodes.renamed.get(old, old) == new or new in nodes.refused:
            continue
        yield UnsupportedChange(
            pair.entity(),
            f"changing the {side} of an edge from `{old}` to `{new}` is not supported",
            MigrationCode.ENDPOINT_CHANGE,
            hint=_endpoint_hint(old, new, nodes),
        )


def _endpoint_hint(old: str, new: str, nodes: Match) -> str:
    if old in nodes.dropped and new not in nodes.previous:
        return f'if `{new}` is `{old}` renamed, write `@rename_from("{old}")` on it'
    return "declare a new edge type and drop this one"


def _drop_tables(kind: TypeKind, match: Match, *, allow_data_loss: bool) -> Iterator[Step]:
    mode, work = (
        (DropMode.HARD, DataWork.PURGE) if allow_data_loss else (DropMode.SOFT, DataWork.NONE)
    )
    for name in match.dropped:
        yield DropType(kind, name, mode, tier=Tier.DESTRUCTIVE, data_work=work)


def _drop_interfaces(before: Catalog, desired: Catalog) -> Iterator[Step]:
    for name in sorted(before.interfaces):
        if name not in desired.interfaces:
            yield DropType(TypeKind.INTERFACE, name, DropMode.SOFT)
