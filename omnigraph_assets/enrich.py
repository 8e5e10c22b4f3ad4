"""What is derived from loaded rows: vectors, indexes and topology, each with one publish at most.

Automation asks for what changed; the engine makes whatever is missing on the branch, so asking for
a part of it is never wrong and at worst early.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from omnigraph_assets.accepted import AcceptedState
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.load import refuse_stale
from omnigraph_assets.names import Names
from omnigraph_assets.told import failures, spark_metadata
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.schema.indexes import physical_indexes


def build_embeddings(config: GraphConfig, state: AcceptedState) -> dg.AssetsDefinition | None:
    """An asset for each embedded property; None if there are none."""
    names = Names(config.name)
    pairs = [(node.name, name) for node in state.catalog.nodes.values() for name in node.embeddings]
    if not pairs:
        return None
    specs = [
        _spec(
            config,
            names.embedding(*pair),
            deps=[names.node(pair[0])],
            group="embeddings",
            description=f"Vectors of {pair[0]}.{pair[1]}, made of their text.",
        )
        for pair in pairs
    ]

    @dg.multi_asset(
        name=names.named("embeddings"),
        specs=specs,
        can_subset=True,
        partitions_def=names.branches,
        pool="embeddings",
    )
    def embeddings(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        branch = context.partition_key
        with failures(), config.open() as graph:
            refuse_stale(graph, branch, state)
            made = _embed(graph, branch)
            for status in graph.embedding_status(branch):
                key = names.embedding(status.type_name, status.property)
                if key in context.selected_asset_keys:
                    told = {"ready": status.ready, "pending": status.pending, "stale": status.stale}
                    yield dg.MaterializeResult(
                        key, metadata={**told, "model": status.model, "vectors_made": made}
                    )

    return embeddings


def _embed(graph: Omnigraph, branch: str) -> int:
    """Make the vectors that are missing, and publish them together.

    Named after the commit it begins with, work that was interrupted is found again.
    """
    if not any(status.pending or status.stale for status in graph.embedding_status(branch)):
        return 0
    head = graph.head_commit_id_for_branch(branch)
    run = graph.begin_run(branch, operation_hash=f"embeddings|{head}")
    made = graph.embed_backfill(branch=run.run_branch).vectors_made
    try:
        graph.publish_run(run.run_id)
    except MergeConflicts:
        graph.abort_run(run.run_id)  # others changed the texts; the next run takes theirs
        raise
    return made


def build_indexes(config: GraphConfig, state: AcceptedState) -> dg.AssetsDefinition:
    """An asset for each indexed column, and the topology."""
    names, catalog = Names(config.name), state.catalog
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    columns = {
        (type.table_key, spec.columns[0]): names.index(type.name, spec.columns[0])
        for type in types
        for spec in physical_indexes(type)
    }
    specs = [
        _spec(
            config,
            key,
            deps=[names.table(table_key), *_vectors_of(names, types, table_key, column)],
            group="indexes",
            description=f"The index of {column} of {table_key}.",
        )
        for (table_key, column), key in columns.items()
    ]
    topology = _spec(
        config,
        names.key("topology"),
        deps=[names.edge(edge) for edge in catalog.edges],
        group="indexes",
        description="Who is connected to whom: what traversals walk along.",
    )

    @dg.multi_asset(
        name=names.named("indexes"),
        specs=[*specs, topology],
        can_subset=True,
        partitions_def=names.branches,
        pool="maintenance",
    )
    def indexes(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        branch, chosen = context.partition_key, context.selected_asset_keys
        with failures(), config.open() as graph:
            refuse_stale(graph, branch, state)
            if any(key in chosen for key in columns.values()):
                reports = graph.ensure_indices(branch=branch, engine=config.engine)
                for report in reports:
                    key = columns[report.table_key, report.column]
                    if key in chosen:
                        chosen = chosen - {key}  # a column may have two indexes
                        about = {**_covered(report), **spark_metadata(reports.spark)}
                        yield dg.MaterializeResult(key, metadata=about)
            if topology.key in chosen:
                yield dg.MaterializeResult(
                    topology.key, metadata=_walked(graph, branch, catalog.edges.values())
                )

    return indexes


def _vectors_of(
    names: Names, types: Iterable[NodeType | EdgeType], table_key: str, column: str
) -> Iterator[dg.AssetKey]:
    """An index of vectors waits for those that are made of texts."""
    for type in types:
        if isinstance(type, NodeType) and type.table_key == table_key and column in type.embeddings:
            yield names.embedding(type.name, column)


def _covered(report: Any) -> dict[str, Any]:
    share = report.covered_rows / report.rows if report.rows else 1.0
    return {
        "kind": report.kind,
        "state": str(report.state),
        "dagster/row_count": report.rows,
        "coverage": share,
        "segments": report.segments,
    }


def _walked(graph: Omnigraph, branch: str, edges: Iterable[EdgeType]) -> dict[str, Any]:
    """Walk along every edge type once; what that takes for large ones is kept beside the graph."""
    counts: dict[str, int] = {}
    for edge in edges:
        name = edge.name[0].lower() + edge.name[1:]
        walk = f"match {{ $a: {edge.source}\n $a {name} $b }} return {{ count($b) as edges }}"
        rows = graph.query(branch, f"query walk() {{ {walk} }}").to_arrow().to_pylist()
        counts[edge.name] = sum(row["edges"] for row in rows)
    return {"edges": sum(counts.values()), "by_type": dg.MetadataValue.json(counts)}


def _spec(
    config: GraphConfig, key: dg.AssetKey, *, deps: list[dg.AssetKey], group: str, description: str
) -> dg.AssetSpec:
    names = Names(config.name)
    return dg.AssetSpec(
        key,
        deps=deps,
        description=description,
        group_name=names.group(group),
        owners=list(config.owners),
        kinds={"lance"},
        automation_condition=_is_behind(dg.AssetSelection.groups(names.group("embeddings"))),
        partitions_def=names.branches,
    )


def _is_behind(embeddings: dg.AssetSelection) -> dg.AutomationCondition[dg.AssetKey]:
    """Ask for what is derived once what it is made of was updated after the last time.

    Dagster's `eager` forgets an update that one tick sees together with the request before it, or
    with what that made: a second load, seconds after the first, would have no topology. Moments
    are compared only between single conditions, hence three of them.

    Args:
        embeddings: made by the run that indexes them, whose own update is none to answer to.
    """
    condition = dg.AutomationCondition
    updated = condition.any_deps_match(condition.newly_updated()).ignore(embeddings)
    by_others = condition.newly_updated() & ~condition.executed_with_root_target()
    vectors = condition.any_deps_match(by_others).allow(embeddings).since_last_handled()
    is_wanted = (
        updated.since(condition.newly_requested())
        | vectors
        | condition.newly_missing().since_last_handled()
    )
    is_possible = ~condition.any_deps_missing() & ~condition.any_deps_in_progress()
    return (is_wanted & is_possible & ~condition.in_progress()).with_label("is behind")
