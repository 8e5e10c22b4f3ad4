"""`omnigraph blob …`: the bytes of one property of one row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.files import replacing
from omnigraph_core.cli.options import JsonOption
from omnigraph_core.cli.output import key_values, print_json, print_lines, write_chunks
from omnigraph_core.cli.snapshots import (
    AtOption,
    BranchOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.cli.snapshots import Which
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.write.blobs import Blob

app = typer.Typer(help="Read files that are kept in rows.", no_args_is_help=True)

_PIECE: Final = 4 * 2**20
"""Bytes that are in memory at a time."""

TypeArgument = Annotated[
    str, typer.Argument(metavar="TYPE", help="The type of the row.", show_default=False)
]
RowArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the row.", show_default=False)
]
PropertyArgument = Annotated[
    str, typer.Argument(metavar="PROPERTY", help="Its Blob property.", show_default=False)
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write them to this file.  [default: stdout]"),
]
OffsetOption = Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Begin here.")]
LengthOption = Annotated[
    int | None,
    typer.Option("--length", metavar="N", min=0, help="So many bytes at most."),
]


@app.command()
@on_graph
def get(
    graph: GivenGraph,
    type: TypeArgument,
    id: RowArgument,
    property: PropertyArgument,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    offset: OffsetOption = 0,
    length: LengthOption = None,
    output: OutputOption = None,
) -> None:
    """Write the bytes of a blob, or some of them."""
    which = which_snapshot(branch, snapshot, tag, version, at, usual=graph.branch(None))
    opened = graph.open()
    with graph.busy("looking for the blob"):
        blob = opened.open_blob(type, id, property, target=_target(opened, which))
    if blob.reader is None and blob.uri is None:
        raise NotFoundError(f"{type} {id} has no {property}: it is null")
    pieces = _pieces(blob, offset, length)
    if output is None:
        write_chunks(pieces)
        return
    with graph.busy(f"writing {output}"), replacing(output) as file:
        file.writelines(pieces)


@app.command()
@on_graph
def stat(
    graph: GivenGraph,
    type: TypeArgument,
    id: RowArgument,
    property: PropertyArgument,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how long a blob is, or where it is kept."""
    which = which_snapshot(branch, snapshot, tag, version, at, usual=graph.branch(None))
    opened = graph.open()
    with graph.busy("looking for the blob"):
        blob = opened.open_blob(type, id, property, target=_target(opened, which))
    size = None if blob.reader is None else blob.reader.size
    row = {"type": type, "id": id, "property": property}
    if as_json:
        found = {"is_null": size is None and blob.uri is None, "size": size, "kept_at": blob.uri}
        print_json({"uri": graph.address, **row, **found})
        return
    if size is None and blob.uri is None:
        print_lines(["null"])
    print_lines(key_values({"size": size, "kept_at": blob.uri}))


def _target(graph: Omnigraph, which: Which) -> str | ReadTarget:
    from omnigraph_core.history.snapshots import ReadTarget  # beside the engine, open by now
    from omnigraph_core.manifest.snapshot import Snapshot

    found = which.target(graph)
    if isinstance(found, Snapshot):
        return ReadTarget(snapshot_id=found.commit.graph_commit_id)
    return found


def _pieces(blob: Blob, offset: int, length: int | None) -> Iterator[bytes]:
    """
    Raises:
        ConfigError: it is kept elsewhere.
    """
    left = length
    while left is None or left > 0:
        piece = blob.read(offset, _PIECE if left is None else min(_PIECE, left))
        if not piece:
            return
        yield piece
        offset += len(piece)
        left = None if left is None else left - len(piece)
