"""Indexes and topology: one asset for the indexes of each type, one for all links.

The engine completes every index of the branch with at most one commit, whichever assets were
selected. Links are built last: a file of links belongs to one version of its tables.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import dagster as dg

from omnigraph_assets.assets.derived_spec import derived_spec
from omnigraph_assets.assets.load import refuse_stale
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.metadata import failures, spark_metadata
from omnigraph_assets.names import Names
from omnigraph_assets.resources.graph import open_graph
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_core.engine.indexing import IndexReport, IndexState
from omnigraph_core.engine.linking import TopologyOutcome
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.table_facts import table_facts
from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph_core.schema.indexes import physical_indexes

COVERED: Final = "covered"
_COLUMNS: Final = {
    "column": "string",
    "kind": "string",
    "state": "string",
    "coverage": "float",
    "segments": "int",
}


def indexed_types(catalog: Catalog) -> list[NodeType | EdgeType]:
    """The types whose schema asks for an index."""
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return [type for type in types if any(physical_indexes(type))]


def build_indexes(config: GraphConfig, state: AcceptedState) -> dg.AssetsDefinition:
    """An asset for the indexes of each type with its check `covered`, and the topology."""
    names, catalog = Names(config.name), state.catalog
    keys = {type.table_key: names.index(type.name) for type in indexed_types(catalog)}
    specs = [_index_spec(config, names, type) for type in indexed_types(catalog)]
    if catalog.edges:
        specs.append(_topology_spec(config, names, catalog))

    @dg.multi_asset(
        name=names.named("indexes"),
        specs=specs,
        check_specs=[_check_spec(names, key) for key in keys.values()],
        can_subset=True,
        partitions_def=names.branches,
        required_resource_keys=names.resources,
        pool=names.maintenance_pool,
    )
    def indexes(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        branch, chosen = context.partition_key, context.selected_asset_keys
        checked = {check.asset_key for check in context.selected_asset_check_keys}
        with failures(), open_graph(context, config) as graph:
            refuse_stale(graph, branch, state)
            if any(key in chosen or key in checked for key in keys.values()):
                yield from _index(graph, config, branch, keys, chosen, checked)
            if names.topology in chosen:
                yield _topology(graph, config, branch)

    return indexes


def _index_spec(config: GraphConfig, names: Names, type: NodeType | EdgeType) -> dg.AssetSpec:
    vectors = type.embeddings if isinstance(type, NodeType) else ()
    columns = dict.fromkeys(spec.columns[0] for spec in physical_indexes(type))
    return derived_spec(
        config,
        names.index(type.name),
        deps=[
            names.table(type.table_key),
            *(names.embedding(type.name, column) for column in vectors),
        ],
        group="indexes",
        description=f"Indexes of {type.name}: {', '.join(columns)}.",
    )


def _topology_spec(config: GraphConfig, names: Names, catalog: Catalog) -> dg.AssetSpec:
    return derived_spec(
        config,
        names.topology,
        deps=[names.edge(edge) for edge in catalog.edges],
        group="indexes",
        description="Links of all edge types as files that traversals map.",
    )


def _check_spec(names: Names, key: dg.AssetKey) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        COVERED,
        asset=key,
        description="Every index of the type covers every row of the branch.",
        partitions_def=names.branches,
    )


def _index(
    graph: Omnigraph,
    config: GraphConfig,
    branch: str,
    keys: dict[str, dg.AssetKey],
    chosen: set[dg.AssetKey],
    checked: set[dg.AssetKey],
) -> Iterator[Any]:
    began = time.monotonic()
    reports = graph.ensure_indices(branch=branch, engine=config.engine)
    seconds = round(time.monotonic() - began, 3)
    snapshot = graph.snapshot(branch)
    for table_key, key in keys.items():
        own = [report for report in reports if report.table_key == table_key]
        check = _covered(key, own) if key in checked else None
        if key not in chosen:
            if check is not None:
                yield check
            continue
        size = table_facts(graph, snapshot, [table_key])[table_key].stored_bytes
        yield dg.MaterializeResult(
            key,
            metadata={
                **_coverage_metadata(own),
                **({} if size is None else {"bytes": size}),
                "commit_id": snapshot.commit.graph_commit_id,
                "seconds": seconds,
                **spark_metadata(reports.spark),
            },
            check_results=[] if check is None else [check],
        )


def _share(report: IndexReport) -> float:
    return report.covered_rows / report.rows if report.rows else 1.0


def _coverage_metadata(reports: Sequence[IndexReport]) -> dict[str, Any]:
    records = [
        dg.TableRecord(
            {
                "column": report.column,
                "kind": report.kind,
                "state": str(report.state),
                "coverage": _share(report),
                "segments": report.segments,
            }
        )
        for report in reports
    ]
    columns = [dg.TableColumn(name, type) for name, type in _COLUMNS.items()]
    return {
        "dagster/row_count": max((report.rows for report in reports), default=0),
        "coverage": min(map(_share, reports), default=1.0),
        "indexes_built": sum(report.is_built for report in reports),
        "is_inherited": any(report.is_inherited for report in reports),
        "indexes": dg.MetadataValue.table(records, schema=dg.TableSchema(columns=columns)),
    }


def _covered(key: dg.AssetKey, reports: Sequence[IndexReport]) -> dg.AssetCheckResult:
    """Whether the indexes cover all rows.

    An index that is still pending after all others were completed has nothing it could be made of,
    as a column without any vector, unless another branch has to build it.
    """
    behind = [
        report.column
        for report in reports
        if _share(report) < 1.0 and (report.state is not IndexState.PENDING or report.is_inherited)
    ]
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=COVERED,
        passed=not behind,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "coverage": min(map(_share, reports), default=1.0),
            "behind": dg.MetadataValue.json(behind),
        },
    )


def _topology(graph: Omnigraph, config: GraphConfig, branch: str) -> dg.MaterializeResult[Any]:
    began = time.monotonic()
    reports = graph.build_topology(branch=branch, engine=config.engine)
    snapshot = graph.snapshot(branch)
    outcomes = [report.to_json() for report in reports]
    return dg.MaterializeResult(
        Names(config.name).topology,
        metadata={
            "dagster/row_count": sum(report.edges for report in reports),
            "edges": sum(report.edges for report in reports),
            "files_built": sum(report.outcome is TopologyOutcome.BUILT for report in reports),
            "by_type": dg.MetadataValue.json(outcomes),
            "commit_id": snapshot.commit.graph_commit_id,
            "seconds": round(time.monotonic() - began, 3),
            **spark_metadata(reports.spark),
        },
    )
