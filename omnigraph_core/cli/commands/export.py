"""`omnigraph export`: a snapshot out of the graph, as JSONL or Parquet."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from omnigraph_core.cli.files import replacing
from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.options import QuietOption
from omnigraph_core.cli.output import print_json, print_lines
from omnigraph_core.cli.progress import PATIENCE, ByteCounts, StatusLine
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.history.snapshots import ReadTarget


BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Branch to export.  [default: main]"),
]
SnapshotOption = Annotated[
    str | None, typer.Option("--snapshot", metavar="ID", help="Commit to export.")
]
TypeOption = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only this type. May be repeated."),
]
TableOption = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="KEY", help="Only this table. May be repeated."),
]
ParquetOption = Annotated[
    Path | None,
    typer.Option("--parquet", metavar="DIR", help="Write a Parquet file per type below this."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write JSONL to a file, not to standard output."),
]
JsonlOption = Annotated[bool, typer.Option("--jsonl", hidden=True)]
FilesOption = Annotated[
    bool, typer.Option("--json", help="Print what was written to which file, as JSON.")
]


@on_graph
def export(
    graph: GivenGraph,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    types: TypeOption = None,
    tables: TableOption = None,
    parquet: ParquetOption = None,
    output: OutputOption = None,
    jsonl: JsonlOption = False,
    quiet: QuietOption = False,
    as_json: FilesOption = False,
) -> None:
    """Write a snapshot as JSONL that `load` reads back, or as Parquet."""
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("--branch and --snapshot exclude each other")
    if parquet is not None and (output is not None or jsonl):
        raise typer.BadParameter("--parquet excludes --output and --jsonl")
    if jsonl:
        typer.echo("note: --jsonl is not needed, export writes JSONL anyway", err=True)
    if as_json and output is None and parquet is None:
        raise typer.BadParameter("--json goes with --output or --parquet: JSONL is on stdout")
    opened = graph.open()
    target = _target(graph.branch(branch), snapshot)
    chosen = {"types": types or (), "table_keys": tables or ()}
    with interruptible(lambda: "the export is not complete"):
        if parquet is None:
            counts = _write(opened.export_jsonl(target, **chosen), output, is_quiet=quiet)
            if as_json:
                facts = {"rows": counts.rows, "bytes": counts.size, "path": str(output)}
                print_json({"uri": graph.address, "format": "jsonl", **facts})
            return
        with graph.busy(f"writing {parquet}"):
            written = opened.export_parquet(parquet, target, **chosen)
    if as_json:
        files = [
            {"table_key": f.table_key, "rows": f.row_count, "path": str(f.path)} for f in written
        ]
        print_json({"uri": graph.address, "format": "parquet", "files": files})
    else:
        print_lines(f"{f.table_key} rows={f.row_count} {f.path}" for f in written)


def _target(branch: str, snapshot: str | None) -> ReadTarget:
    from omnigraph_core.history.snapshots import ReadTarget  # beside the engine, which is open now

    if snapshot is not None:
        return ReadTarget(snapshot_id=snapshot)
    return ReadTarget(branch=branch)


def _write(chunks: Iterable[bytes], path: Path | None, *, is_quiet: bool) -> ByteCounts:
    """Everything to a file or to stdout; a terminal that gets the rows is not told how many."""
    is_between = path is None and sys.stdout is not None and sys.stdout.isatty()
    with StatusLine.on_stderr(is_quiet=is_quiet or is_between, patience=PATIENCE) as line:
        counts = ByteCounts(line)
        with _opened(path) as file:
            for chunk in chunks:
                file.write(chunk)
                counts(chunk)
            file.flush()
    return counts


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears under its name when it is complete."""
    if path is not None:
        with replacing(path) as file:
            yield file
        return
    if sys.stdout is None:
        raise ConfigError("cannot write the output: it is closed")
    yield sys.stdout.buffer
