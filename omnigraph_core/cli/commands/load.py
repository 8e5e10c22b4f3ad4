"""`omnigraph load` and `omnigraph ingest`: records into a branch with one commit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import (
    MAIN,
    BranchOption,
    EmbedOption,
    EngineOption,
    Format,
    IfCommitOption,
    JsonOption,
    KeyOption,
    Mode,
    NoEmbedOption,
    QuietOption,
    embed_choice,
)
from omnigraph_core.cli.output import count, print_json, print_lines, spark_lines
from omnigraph_core.cli.progress import row_counts
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from omnigraph_core.cli.progress import RowCounts
    from omnigraph_core.engine.ingest import IngestResult
    from omnigraph_core.write.load_model import LoadResult

_STDIN: Final = "-"

DataOption = Annotated[
    list[str],
    typer.Option(
        "--data",
        metavar="PATH",
        help="File, directory or quoted pattern to load, `-` for standard input. May be repeated.",
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        help="`overwrite` replaces all rows of the types in the data, `append` refuses ids that "
        "exist, `merge` replaces them."
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="Format of the data, if no suffix tells it.")
]
TypeOption = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="Type of the rows of a table: Person, edge:Knows."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check everything, write nothing.")]
RejectsOption = Annotated[
    Path | None,
    typer.Option("--rejects", metavar="FILE", help="Write the records that break a rule here."),
]
SkipBadOption = Annotated[
    bool, typer.Option("--skip-bad", help="Load the good records even if others are bad.")
]


@on_graph
def load(
    graph: GivenGraph,
    data: DataOption,
    branch: BranchOption = None,
    mode: ModeOption = "overwrite",
    format: FormatOption = None,
    type: TypeOption = None,
    dry_run: DryRunOption = False,
    rejects: RejectsOption = None,
    skip_bad: SkipBadOption = False,
    embed: EmbedOption = None,
    no_embed: NoEmbedOption = False,
    if_commit: IfCommitOption = None,
    idempotency_key: KeyOption = None,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Load records into a branch: all of them with one commit, or none."""
    written = graph.branch(branch)
    options: dict[str, Any] = {
        "branch": written,
        "mode": mode,
        "format": format,
        "type": type,
        "embed": embed_choice(embed, is_off=no_embed),
        "dry_run": dry_run,
        "rejects": rejects,
        "skip_bad": skip_bad,
        "if_commit": if_commit,
        "idempotency_key": idempotency_key,
        "engine": engine,
        "actor": graph.actor,
    }
    given = _inputs(data)
    opened = graph.open()
    witness = Witness(opened, written)
    with interruptible(lambda: witness.outcome("loaded")), _progress(engine, quiet) as counts:
        result = opened.load(given, progress=counts, **options)
    if as_json:
        print_json({"uri": graph.address, **result.to_json()})
    else:
        print_lines(_load_lines(graph.address, result, rejects))


@on_graph
def ingest(
    graph: GivenGraph,
    data: DataOption,
    branch: BranchOption = None,
    source: Annotated[
        str,
        typer.Option("--from", metavar="NAME", help="Branch to fork a missing branch from."),
    ] = MAIN,
    mode: ModeOption = "merge",
    format: FormatOption = None,
    type: TypeOption = None,
    dry_run: DryRunOption = False,
    rejects: RejectsOption = None,
    skip_bad: SkipBadOption = False,
    embed: EmbedOption = None,
    no_embed: NoEmbedOption = False,
    if_commit: IfCommitOption = None,
    idempotency_key: KeyOption = None,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Load records into a branch that is made first if it is missing."""
    written = graph.branch(branch)
    options: dict[str, Any] = {
        "branch": written,
        "source": source,
        "mode": mode,
        "format": format,
        "type": type,
        "embed": embed_choice(embed, is_off=no_embed),
        "dry_run": dry_run,
        "rejects": rejects,
        "skip_bad": skip_bad,
        "if_commit": if_commit,
        "idempotency_key": idempotency_key,
        "engine": engine,
        "actor": graph.actor,
    }
    given = _inputs(data)
    opened = graph.open()
    witness = Witness(opened, written, fork_of=source)
    with interruptible(lambda: witness.outcome("loaded")), _progress(engine, quiet) as counts:
        result = opened.ingest(given, progress=counts, **options)
    if as_json:
        print_json({"uri": graph.address, **result.to_json()})
    else:
        print_lines(_ingest_lines(graph.address, result, rejects))


def _inputs(data: Sequence[str]) -> list[str | IO[bytes]]:
    """Paths as they are, standard input opened."""
    if data.count(_STDIN) > 1:
        raise typer.BadParameter("standard input can be read once")
    return [_stdin() if name == _STDIN else name for name in data]


def _stdin() -> IO[bytes]:
    if sys.stdin is None:
        raise ConfigError("standard input is closed")
    return sys.stdin.buffer


def _progress(engine: str, is_quiet: bool) -> AbstractContextManager[RowCounts]:
    return row_counts("loading on Spark" if engine == "spark" else "loading", is_quiet=is_quiet)


def _load_lines(address: str, result: LoadResult, rejects: Path | None) -> Iterator[str]:
    yield (
        f"{_done(result)} {address} branch {result.branch} with {result.mode}: "
        f"{result.nodes_loaded} nodes across {result.node_types_loaded} node types, "
        f"{result.edges_loaded} edges across {result.edge_types_loaded} edge types"
    )
    yield from _outcome_lines(address, result, rejects)


def _ingest_lines(address: str, result: IngestResult, rejects: Path | None) -> Iterator[str]:
    loaded = result.loaded
    yield (
        f"{_done(loaded)} {address} branch {result.branch} from {result.base_branch} "
        f"with {loaded.mode}: branch {'created' if result.branch_created else 'exists'}"
    )
    for table in loaded.tables:
        yield f"{table.table_key} rows_loaded={table.rows_loaded}"
    if result.actor_id is not None:
        yield f"actor_id: {result.actor_id}"
    yield from _outcome_lines(address, loaded, rejects)


def _done(result: LoadResult) -> str:
    if result.is_dry_run:
        return "checked"
    return "already loaded" if result.is_repeat else "loaded"


def _outcome_lines(address: str, result: LoadResult, rejects: Path | None) -> Iterator[str]:
    if result.commit is not None:
        yield f"commit_id: {result.commit.graph_commit_id}"
    yield from spark_lines(result)
    if result.records_rejected:
        where = "name a file with --rejects to see them" if rejects is None else f"see {rejects}"
        yield f"rejected: {count(result.records_rejected, 'record')}, {where}"
    if result.vectors_pending and not result.is_dry_run:
        pending = count(result.vectors_pending, "vector")
        yield f"pending: {pending}, make them with `omnigraph embed {address}`"
