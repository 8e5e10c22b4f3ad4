"""`omnigraph embed`: vectors for a graph that lacks some, or for a seed file without a graph.

A first argument `status` or `backfill` says what to do with the graph; any other one is the graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.options import Engine, JsonOption, QuietOption
from omnigraph_core.cli.output import count, print_json, print_lines, spark_lines
from omnigraph_core.cli.progress import FileCounts, RowCounts, StatusLine
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.embedding.files import EmbedJob, embed_file
from omnigraph_core.embedding.seed_rows import parse_selector
from omnigraph_core.embedding.spec import Seed, load_seed, load_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.write.backfill import EmbeddingStatus

STATUS: Final = "status"
BACKFILL: Final = "backfill"

Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[status|backfill] URI",
        help="Count vectors, or make those that lack, which is what is done without a word; and "
        "the graph: a path, file:///path, s3://bucket/prefix or the URL of a server.",
        show_default=False,
    ),
]
BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Branch of the graph.  [default: main]"),
]
StatusOption = Annotated[
    bool, typer.Option("--status", help="The same as `status`: only count vectors.")
]
SeedOption = Annotated[
    Path | None,
    typer.Option("--seed", metavar="FILE", help="Seed manifest (YAML) that names the files."),
]
InputOption = Annotated[
    Path | None, typer.Option("--input", metavar="FILE", help="File of records to embed.")
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="File to write them to.")
]
SpecOption = Annotated[
    Path | None,
    typer.Option("--spec", metavar="FILE", help="What to embed of which types (JSON)."),
]
CleanOption = Annotated[
    bool, typer.Option("--clean", help="Remove the vectors of the selected records.")
]
ReembedOption = Annotated[
    bool, typer.Option("--reembed-all", help="Make vectors anew where there are some, too.")
]
ReembedAlias = Annotated[bool, typer.Option("--reembed_all", hidden=True)]
TypeOption = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only records of this type. May be repeated."),
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="[TYPE:]FIELD=VALUE",
        help="Only records with this value; those that have a vector, too. May be repeated.",
    ),
]

EngineOption = Annotated[
    Engine,
    typer.Option("--engine", help="Who does the work: this process, as with `auto`, or Spark."),
]


@on_graph
def embed(
    ctx: typer.Context,
    graph: GivenGraph,
    args: Arguments = None,
    branch: BranchOption = None,
    status: StatusOption = False,
    seed: SeedOption = None,
    input: InputOption = None,
    output: OutputOption = None,
    spec: SpecOption = None,
    clean: CleanOption = False,
    reembed_all: ReembedOption = False,
    reembed_all_alias: ReembedAlias = False,
    types: TypeOption = None,
    select: SelectOption = None,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make the vectors a graph lacks, or those of a file of records.

    With a graph: makes every vector of the branch that is pending or stale; `status` counts them.

    With --seed, or with --input, --output and --spec: reads records and writes them with vectors.
    """
    is_all = reembed_all or reembed_all_alias
    files = {"--seed": seed, "--input": input, "--output": output, "--spec": spec}
    narrowing = {"--clean": clean, "--reembed-all": is_all, "--type": types, "--select": select}
    if not _given(files):
        _refuse_together("a graph", narrowing)
        word, uri = _word_and_uri(args or [])
        chosen_graph = graph if uri is None else graph.at(uri)
        if word == STATUS or status:
            _show_status(chosen_graph, branch, as_json=as_json)
        else:
            _backfill(chosen_graph, branch, engine, is_quiet=quiet, as_json=as_json)
        return
    address = args or ctx.params["uri_option"] or ctx.params["target"]
    chosen_engine = engine if engine != "auto" else None
    of_graph = {"a URI": address, "--branch": branch, "--status": status, "--engine": chosen_engine}
    _refuse_together("files", {**of_graph, "--as": ctx.params["actor"]})
    if clean and is_all:
        raise typer.BadParameter("--clean and --reembed-all exclude each other")
    chosen = _files(seed, input, output, spec)
    job = EmbedJob(
        chosen.input,
        chosen.output,
        chosen.spec,
        tuple(types or ()),
        tuple(parse_selector(text) for text in select or ()),
        is_clean=clean,
        is_reembed_all=is_all,
    )
    _embed_files(job, is_quiet=quiet, as_json=as_json)


def _word_and_uri(args: list[str]) -> tuple[str | None, str | None]:
    """What to do, if it is said, and the graph, if it is named."""
    word, *rest = args if args and args[0] in (STATUS, BACKFILL) else [None, *args]
    if len(rest) > 1:
        raise typer.BadParameter(f"expected one graph, found {' '.join(filter(None, rest))}")
    return word, rest[0] if rest else None


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value]


def _refuse_together(what: str, options: Mapping[str, object]) -> None:
    if found := _given(options):
        raise typer.BadParameter(f"{', '.join(found)} cannot be used with {what}")


def _files(seed: Path | None, input: Path | None, output: Path | None, spec: Path | None) -> Seed:
    """What a run reads and writes; a manifest may be told to write elsewhere."""
    if seed is not None:
        if input is not None or spec is not None:
            raise typer.BadParameter("--seed excludes --input and --spec")
        manifest = load_seed(seed)
        return Seed(manifest.input, output or manifest.output, manifest.spec)
    if input is None or output is None or spec is None:
        raise typer.BadParameter("give --seed, or --input, --output and --spec")
    return Seed(input, output, load_spec(spec))


def _embed_files(job: EmbedJob, *, is_quiet: bool, as_json: bool) -> None:
    from omnigraph_core.embedding.embedder import Embedder  # slow: brings numpy

    with (
        interruptible(lambda: f"{job.output} is as it was"),
        StatusLine.on_stderr(is_quiet=is_quiet) as line,
    ):
        summary = embed_file(job, Embedder.from_settings(), on_done=FileCounts(line))
    if as_json:
        print_json(summary.to_json())
    else:
        typer.echo(summary.render())


def _show_status(graph: GivenGraph, branch: str | None, *, as_json: bool) -> None:
    on = graph.branch(branch)
    opened = graph.open()
    with graph.busy("counting vectors"):
        found = opened.embedding_status(on)
    if as_json:
        rows = [item.to_json() for item in found]
        print_json({"uri": graph.address, "branch": on, "embeddings": rows})
    else:
        print_lines(_status_lines(found))


def _status_lines(found: Sequence[EmbeddingStatus]) -> Iterator[str]:
    if not found:
        yield "no property is embedded"
    for item in found:
        yield (
            f"{item.type_name}.{item.property} model={item.model} ready={item.ready} "
            f"pending={item.pending} stale={item.stale}"
        )


def _backfill(
    graph: GivenGraph, branch: str | None, engine: str, *, is_quiet: bool, as_json: bool
) -> None:
    on = graph.branch(branch)
    opened = graph.open()
    with (
        interruptible(lambda: "vectors that were made are kept, repeat to make the others"),
        StatusLine.on_stderr(is_quiet=is_quiet) as line,
    ):
        result = opened.embed_backfill(
            branch=on, progress=RowCounts(line), engine=engine, actor=graph.actor
        )
    if as_json:
        print_json({"uri": graph.address, **result.to_json()})
        return
    made = count(result.vectors_made, "vector")
    typer.echo(f"embedded {graph.address} branch {on}: {made}")
    print_lines(f"commit_id: {commit}" for commit in result.commits)
    print_lines(spark_lines(result))
