"""`omnigraph snapshot`: which version of every table is visible together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.cli.options import MAIN, JsonOption
from omnigraph_core.cli.output import print_json, print_lines
from omnigraph_core.cli.snapshots import (
    AtOption,
    BranchOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.target import GivenGraph, on_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.manifest.snapshot import Snapshot


@on_graph
def snapshot(
    graph: GivenGraph,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which version of every table is visible, and how many rows it has."""
    which = which_snapshot(branch, snapshot, tag, version, at, usual=graph.branch(None))
    opened = graph.open()
    with graph.busy("reading the snapshot"):
        found = _resolved(opened, which.target(opened))
    if as_json:
        print_json(_document(found))
    else:
        print_lines(_lines(found))


def _resolved(graph: Omnigraph, target: str | ReadTarget | Snapshot) -> Snapshot:
    from omnigraph_core.manifest.snapshot import Snapshot  # beside the engine, open by now

    return target if isinstance(target, Snapshot) else graph.snapshot_of(target)


def _document(found: Snapshot) -> dict[str, object]:
    return {
        "branch": found.branch,
        "manifest_version": found.manifest_version,
        "tables": [
            {
                "table_key": entry.table_key,
                "table_path": entry.location,
                "table_version": entry.table_version,
                "table_branch": entry.branch,
                "row_count": entry.row_count,
            }
            for _, entry in sorted(found.tables.items())
        ],
        "commit_id": found.commit.graph_commit_id,
    }


def _lines(found: Snapshot) -> Iterator[str]:
    yield f"branch: {found.branch}"
    yield f"manifest_version: {found.manifest_version}"
    for key, entry in sorted(found.tables.items()):
        yield f"{key} v{entry.table_version} branch={entry.branch or MAIN} rows={entry.row_count}"
