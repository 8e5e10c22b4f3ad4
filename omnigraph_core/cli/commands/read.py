"""`omnigraph read`: run a query and print its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.aliases import AliasOption, ArgsArgument, asked
from omnigraph_core.cli.formats import Answer, Layout, iter_output
from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.limits import EngineOption, MemoryOption, TimeoutOption, read_limits
from omnigraph_core.cli.options import JsonOption, QuietOption
from omnigraph_core.cli.output import write_chunks
from omnigraph_core.cli.params import ParamsFileOption, ParamsOption, read_params
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.query_text import (
    NameOption,
    QueryOption,
    QueryStringOption,
    problems_in,
)
from omnigraph_core.cli.snapshots import (
    AtOption,
    BranchOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.config.model import Form

if TYPE_CHECKING:
    from omnigraph_core.config.model import CliConfig

FormatOption = Annotated[
    Form | None, typer.Option("--format", help="How rows are printed.  [default: table]")
]
MaxWidthOption = Annotated[
    int | None,
    typer.Option(
        "--max-width",
        metavar="N",
        min=1,
        help="Columns of a table: at most this wide.  [default: 80]",
    ),
]
WrapOption = Annotated[
    bool | None,
    typer.Option(
        "--wrap/--no-wrap", help="Wrap longer cells of a table, or cut them.  [default: no-wrap]"
    ),
]


@on_graph
def read(
    graph: GivenGraph,
    args: ArgsArgument = None,
    alias: AliasOption = None,
    query: QueryOption = None,
    query_string: QueryStringOption = None,
    name: NameOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    form: FormatOption = None,
    max_width: MaxWidthOption = None,
    wrap: WrapOption = None,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
    engine: EngineOption = "local",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a query on one snapshot and print its rows."""
    given = _form(form, is_json=as_json)
    seconds, byte_count = read_limits(timeout, memory)
    by_name = read_params(params, params_file)
    wanted = asked(
        graph,
        args,
        alias=alias,
        query=query,
        query_string=query_string,
        name=name,
        is_mutation=False,
    )
    usual = wanted.graph.config.cli
    which = which_snapshot(branch, snapshot, tag, version, at, usual=wanted.graph.branch(None))
    with interruptible(lambda: "the query was stopped"):
        opened = wanted.graph.open()
        running = busy("running the query", is_quiet=quiet)
        with problems_in(wanted.query.name, wanted.query.text), running:
            result = opened.query(
                which.target(opened),
                wanted.query.text,
                wanted.name,
                wanted.params(by_name),
                timeout=seconds,
                memory=byte_count,
                engine=engine,
            )
    answer = Answer(result, is_head=which.is_head)
    chosen = given or wanted.form or usual.output_format
    with interruptible(lambda: "the output is not complete"):
        write_chunks(iter_output(answer, chosen, _layout(usual, max_width, wrap)))


def _form(form: Form | None, *, is_json: bool) -> Form | None:
    if is_json and form not in (None, "json"):
        raise typer.BadParameter(f"--json and --format {form} exclude each other")
    return "json" if is_json else form


def _layout(usual: CliConfig, max_width: int | None, wrap: bool | None) -> Layout:
    is_wrapping = usual.table_cell_layout == "wrap" if wrap is None else wrap
    return Layout(max_width or usual.table_max_column_width, is_wrapping=is_wrapping)
