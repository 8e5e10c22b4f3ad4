"""Maintenance of a branch: compaction, and cleanup, which is a dry run unless confirmed."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from omnigraph_assets.assets.derived_spec import derived_spec
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.metadata import failures, spark_metadata
from omnigraph_assets.names import Names
from omnigraph_assets.resources.graph import open_graph
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.table_facts import table_facts

COMPACTION = "compaction"
CLEANUP = "cleanup"


class CleanupConfig(dg.Config):
    """Cleanup removes nothing unless `confirm` is set."""

    confirm: bool = False


def build_maintenance(target: GraphConfig) -> dg.AssetsDefinition:
    """The assets `compaction` and `cleanup`, together or alone."""
    names = Names(target.name)
    descriptions = {
        COMPACTION: "Tables in fewer, fuller files with complete indexes: one commit at most.",
        CLEANUP: "Versions that are no longer kept, and files that nothing needs.",
    }
    specs = [
        derived_spec(
            target,
            names.key(what),
            deps=[names.manifest],
            group="maintenance",
            description=description,
        )
        for what, description in descriptions.items()
    ]

    @dg.multi_asset(
        name=names.named("maintenance"),
        specs=specs,
        can_subset=True,
        partitions_def=names.branches,
        required_resource_keys=names.resources,
        pool=names.maintenance_pool,
    )
    def maintenance(
        context: dg.AssetExecutionContext, config: CleanupConfig
    ) -> Iterator[dg.MaterializeResult[Any]]:
        branch, chosen = context.partition_key, context.selected_asset_keys
        with failures(), open_graph(context, target) as graph:
            if names.key(COMPACTION) in chosen:
                yield dg.MaterializeResult(
                    names.key(COMPACTION), metadata=_compact(graph, target, branch)
                )
            if names.key(CLEANUP) in chosen:
                yield dg.MaterializeResult(
                    names.key(CLEANUP),
                    metadata=_clean_up(graph, target, branch, is_confirmed=config.confirm),
                )

    return maintenance


def _compact(graph: Omnigraph, config: GraphConfig, branch: str) -> dict[str, Any]:
    began = time.monotonic()
    tables = graph.optimize(branch=branch, engine=config.engine)
    snapshot = graph.snapshot(branch)
    facts = table_facts(graph, snapshot, list(snapshot.tables))
    return {
        "dagster/row_count": sum(table.row_count for table in snapshot.tables.values()),
        "bytes": sum(fact.stored_bytes or 0 for fact in facts.values()),
        "tables_rewritten": sum(table.committed for table in tables),
        "fragments_removed": sum(table.fragments_removed for table in tables),
        "fragments_added": sum(table.fragments_added for table in tables),
        "tables": dg.MetadataValue.json([table.to_json() for table in tables]),
        "commit_id": snapshot.commit.graph_commit_id,
        "seconds": round(time.monotonic() - began, 3),
        **spark_metadata(tables.spark),
    }


def _clean_up(
    graph: Omnigraph, config: GraphConfig, branch: str, *, is_confirmed: bool
) -> dict[str, Any]:
    began = time.monotonic()
    report = graph.cleanup(
        keep=config.keep_versions,
        branches=[branch],
        is_preview=not is_confirmed,
        engine=config.engine,
    )
    return {
        "is_preview": report.is_preview,
        "bytes_removed": report.bytes_removed,
        "versions_removed": report.old_versions_removed,
        "derived_files_removed": report.derived_files_removed,
        "derived_bytes_removed": report.derived_bytes_removed,
        "seconds": round(time.monotonic() - began, 3),
        **spark_metadata(report.spark),
    }
