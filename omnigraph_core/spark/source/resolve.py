"""Options come in, an exact version of the table they name goes out, if the policy allows it.

This happens once, on the driver. A pin means the same rows for ever: tasks on other machines open
that version without asking for anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.type_names import find_type
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.spark.source.pin import Pin
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.write.export import exported_columns

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.spark.source.options import ReadOptions


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
