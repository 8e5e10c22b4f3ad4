"""Vectors made of texts: one asset for each embedded property.

The engine makes every vector that is missing on the branch, whichever assets were selected. On
Spark it publishes them with one commit; an interrupted backfill pays for no vector twice.
"""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from omnigraph_assets.assets.derived_spec import derived_spec
from omnigraph_assets.assets.load import refuse_stale
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.metadata import ProgressLogger, failures, spark_metadata
from omnigraph_assets.names import Names
from omnigraph_assets.resources.graph import open_graph
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_core.engine.table_facts import table_facts
from omnigraph_core.ids import node_table_key
from omnigraph_core.schema.catalog import Catalog


def embedded_properties(catalog: Catalog) -> list[tuple[str, str]]:
    """The type and the name of every property that is made of a text."""
    return [(node.name, name) for node in catalog.nodes.values() for name in node.embeddings]


def build_embeddings(config: GraphConfig, state: AcceptedState) -> dg.AssetsDefinition | None:
    """An asset for each embedded property; None if the schema has none."""
    names = Names(config.name)
    specs = [
        derived_spec(
            config,
            names.embedding(type_name, name),
            deps=[names.node(type_name)],
            group="embeddings",
            description=f"Vectors of {type_name}.{name}, made of their text.",
        )
        for type_name, name in embedded_properties(state.catalog)
    ]
    if not specs:
        return None

    @dg.multi_asset(
        name=names.named("embeddings"),
        specs=specs,
        can_subset=True,
        partitions_def=names.branches,
        required_resource_keys=names.resources,
        pool=names.embedding_pool,
    )
    def embeddings(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        branch, began = context.partition_key, time.monotonic()
        with failures(), open_graph(context, config) as graph:
            refuse_stale(graph, branch, state)
            progress = ProgressLogger(context.log.info)
            done = graph.embed_backfill(branch=branch, engine=config.engine, progress=progress)
            snapshot = graph.snapshot(branch)
            about_run = {
                "vectors_made": done.vectors_made,
                "commits": dg.MetadataValue.json(list(done.commits)),
                "commit_id": snapshot.commit.graph_commit_id,
                "seconds": round(time.monotonic() - began, 3),
                **spark_metadata(done.spark),
            }
            for status in graph.embedding_status(branch):
                key = names.embedding(status.type_name, status.property)
                if key not in context.selected_asset_keys:
                    continue
                table_key = node_table_key(status.type_name)
                size = table_facts(graph, snapshot, [table_key])[table_key].stored_bytes
                yield dg.MaterializeResult(
                    key,
                    metadata={
                        "dagster/row_count": snapshot.table(table_key).row_count,
                        "ready": status.ready,
                        "pending": status.pending,
                        "stale": status.stale,
                        "model": status.model,
                        **({} if size is None else {"bytes": size}),
                        **about_run,
                    },
                )

    return embeddings
