"""Options come in, an exact version of the table they name goes out, if the policy allows it.

This happens once, on the driver. A pin means the same rows for ever: tasks on other machines open
that version without asking for anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.spark.source.pin import Pin
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.write.export import exported_columns

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.spark.source.options import ReadOptions
    from omnigraph_core.write.batches import GraphType


def pin_table(options: ReadOptions) -> Pin:
    """The table that options name.

    Raises:
        NotFoundError: no such graph, branch, commit, tag or version.
        ConfigError: no such type or column.
        PolicyDenied: the actor may not read there.
    """
    with options.graph.open() as graph:
        snapshot = snapshot_of(graph, options)
        type = find_type(accepted_catalog(snapshot.schema), options.type_name)
        table = graph.table(snapshot, type.table_key)
    columns = exported_columns(type)
    return Pin(
        snapshot.commit.graph_commit_id,
        type.table_key,
        TablePlace.of(table),
        columns,
        tuple(name for name in columns if name in type.blob_properties),
    )


def snapshot_of(graph: Omnigraph, options: ReadOptions) -> Snapshot:
    """The snapshot that options name; the newest one of main if they name none."""
    if options.version is not None:
        return graph.snapshot_at_version(options.version, branch=options.branch or MAIN)
    if options.commit is None and options.tag is None:
        return graph.snapshot(options.branch or MAIN)
    return graph.snapshot_of(ReadTarget(snapshot_id=options.commit, tag=options.tag))


def find_type(catalog: Catalog, name: str) -> GraphType:
    """The type that `Person`, `node:Person` or `edge:Knows` names.

    Raises:
        ConfigError: there is none, or there are two.
    """
    kind, _, bare = name.rpartition(":")
    node = catalog.nodes.get(bare) if kind in ("", "node") else None
    edge = catalog.try_edge(bare) if kind in ("", "edge") else None
    if node is not None and edge is not None:
        raise ConfigError(
            f"`{bare}` is a node type and an edge type", hint=f"say node:{bare} or edge:{bare}"
        )
    found = node or edge
    if found is None:
        known = [*catalog.nodes, *catalog.edges]
        hint = did_you_mean(bare, known) or f"types there: {', '.join(known) or 'none'}"
        raise ConfigError(f"unknown type `{name}`", hint=hint)
    return found
