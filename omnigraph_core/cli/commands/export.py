"""`omnigraph export`: a snapshot out of the graph, as JSONL or Parquet."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.output import print_lines
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
) -> None:
    """Write a snapshot as JSONL that `load` reads back, or as Parquet."""
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("--branch and --snapshot exclude each other")
    if parquet is not None and (output is not None or jsonl):
        raise typer.BadParameter("--parquet excludes --output and --jsonl")
    if jsonl:
        typer.echo("note: --jsonl is not needed, export writes JSONL anyway", err=True)
    opened = graph.open()
    target = _target(graph.branch(branch), snapshot)
    with interruptible(lambda: "the export is not complete"):
        if parquet is not None:
            written = opened.export_parquet(
                parquet, target, types=types or (), table_keys=tables or ()
            )
            print_lines(f"{f.table_key} rows={f.row_count} {f.path}" for f in written)
            return
        lines = opened.export_jsonl(target, types=types or (), table_keys=tables or ())
        with _opened(output) as file:
            for chunk in lines:
                file.write(chunk)
            file.flush()


def _target(branch: str, snapshot: str | None) -> ReadTarget:
    from omnigraph_core.history.snapshots import ReadTarget  # beside the engine, which is open now

    if snapshot is not None:
        return ReadTarget(snapshot_id=snapshot)
    return ReadTarget(branch=branch)


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears under its name when it is complete."""
    if path is None:
        if sys.stdout is None:
            raise ConfigError("cannot write the output: it is closed")
        yield sys.stdout.buffer
        return
    draft = path.with_name(f"{path.name}.tmp")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(path)
    except OSError as problem:
        raise ConfigError(f"cannot write {path}: {problem.strerror}") from problem
    finally:
        draft.unlink(missing_ok=True)
