"""What the catalog says of each asset: a type comes in, its specification goes out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.names import Names, output_of
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, EdgeType, NodeType
from omnigraph_core.schema.catalog import PropertyDef as Property


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table of the graph and the asset that stands for it."""

    table_key: str
    type_name: str
    spec: dg.AssetSpec

    @property
    def output(self) -> str:
        return output_of(self.table_key)


def table_specs(config: GraphConfig, state: AcceptedState) -> tuple[TableSpec, ...]:
    """One for each type: nodes first, so that no asset stands before one it depends on."""
    names, catalog = Names(config.name), state.catalog
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return tuple(
        TableSpec(type.table_key, type.name, _type_spec(config, names, state, type))
        for type in types
    )


def _type_spec(
    config: GraphConfig, names: Names, state: AcceptedState, type: NodeType | EdgeType
) -> dg.AssetSpec:
    is_node = isinstance(type, NodeType)
    ends = () if isinstance(type, NodeType) else dict.fromkeys((type.source, type.target))
    shape = "" if isinstance(type, NodeType) else f" from {type.source} to {type.target}"
    usual = f"{'Nodes' if is_node else 'Edges'} of the type {type.name}{shape}."
    return dg.AssetSpec(
        names.node(type.name) if is_node else names.edge(type.name),
        deps=[names.drops, *(names.node(end) for end in ends)],
        description=_described(type) or usual,
        group_name=names.group("nodes" if is_node else "edges"),
        owners=list(config.owners),
        kinds=config.kinds,
        metadata={
            "dagster/column_schema": dg.TableSchema(columns=list(_columns(type))),
            "table_key": type.table_key,
            "graph": config.uri,
            "schema_hash": state.schema_hash,
        },
        partitions_def=names.branches,
    )


def _columns(type: NodeType | EdgeType) -> Iterator[dg.TableColumn]:
    for name in NODE_IMPLICIT if isinstance(type, NodeType) else EDGE_IMPLICIT:
        yield dg.TableColumn(
            name,
            "String",
            constraints=dg.TableColumnConstraints(nullable=False, unique=name == "id"),
        )
    single = {group[0] for group in type.unique if len(group) == 1}
    if isinstance(type, NodeType) and type.key is not None and len(type.key) == 1:
        single.add(type.key[0])
    for prop in type.properties.values():
        yield dg.TableColumn(
            prop.name,
            str(prop.type),
            description=_described(prop),
            constraints=dg.TableColumnConstraints(
                nullable=prop.type.is_nullable, unique=prop.name in single
            ),
        )


def _described(declared: NodeType | EdgeType | Property) -> str | None:
    found = (item.value for item in declared.annotations if item.name == "description")
    argument = next(found, None)
    return None if argument is None else argument.text


def manifest_spec(config: GraphConfig, tables: tuple[TableSpec, ...]) -> dg.AssetSpec:
    """The catalog of a branch: it changes with every publish."""
    names = Names(config.name)
    return dg.AssetSpec(
        names.manifest,
        deps=[table.spec.key for table in tables],
        description="The catalog of a branch: which versions of all tables are visible together.",
        group_name=names.group("publish"),
        owners=list(config.owners),
        kinds=config.kinds,
        metadata={"graph": config.uri},
        partitions_def=names.branches,
        freshness_policy=_freshness(config),
    )


def _freshness(config: GraphConfig) -> dg.FreshnessPolicy | None:
    if config.fresh_within_hours is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=config.fresh_within_hours))


def drops_spec(config: GraphConfig) -> dg.AssetSpec:
    """The files that others drop; nothing here makes them."""
    names = Names(config.name)
    return dg.AssetSpec(
        names.drops,
        description="Files of records that were dropped, in one folder for each branch.",
        group_name=names.group("sources"),
        owners=list(config.owners),
        kinds={"json"},
        metadata={} if config.drops is None else {"directory": config.drops},
    )


def by_output(tables: tuple[TableSpec, ...], manifest: dg.AssetSpec) -> Mapping[str, dg.AssetSpec]:
    """Specifications by the output that stands for each, in the order that Dagster demands."""
    return {**{table.output: table.spec for table in tables}, "manifest": manifest}
