"""`omnigraph read`: run a query and print its rows."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph_core.cli.formats import MAX_WIDTH, Answer, Form, Layout, iter_output
from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.limits import MemoryOption, TimeoutOption, read_limits
from omnigraph_core.cli.options import JsonOption  # noqa: TC001 - typer reads annotations
from omnigraph_core.cli.output import write_chunks
from omnigraph_core.cli.params import ParamsFileOption, ParamsOption, read_params
from omnigraph_core.cli.query_text import (
    NameOption,
    QueryOption,
    QueryStringOption,
    problems_in,
    query_text,
)
from omnigraph_core.cli.snapshots import (
    AtOption,
    BranchOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph

FormatOption = Annotated[
    Form | None, typer.Option("--format", help="How rows are printed.  [default: table]")
]
MaxWidthOption = Annotated[
    int,
    typer.Option("--max-width", metavar="N", min=1, help="Columns of a table: at most this wide."),
]
WrapOption = Annotated[
    bool, typer.Option("--wrap", help="Wrap longer cells of a table, in place of cutting them.")
]


def read(
    uri: UriArgument = None,
    uri_option: UriOption = None,
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
    max_width: MaxWidthOption = MAX_WIDTH,
    wrap: WrapOption = False,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a query on one snapshot and print its rows."""
    address = graph_address(uri, uri_option)
    chosen = _form(form, is_json=as_json)
    which = which_snapshot(branch, snapshot, tag, version, at)
    seconds, byte_count = read_limits(timeout, memory)
    values = read_params(params, params_file)
    source = query_text(query, query_string)
    with interruptible(lambda: "the query was stopped"):
        graph = open_graph(address)
        with problems_in(source.name):
            result = graph.query(
                which.target(graph),
                source.text,
                name,
                values,
                timeout=seconds,
                memory=byte_count,
            )
    answer = Answer(result, is_head=which.is_head)
    layout = Layout(max_width, is_wrapping=wrap)
    with interruptible(lambda: "the output is not complete"):
        write_chunks(iter_output(answer, chosen, layout))


def _form(form: Form | None, *, is_json: bool) -> Form:
    if is_json and form not in (None, "json"):
        raise typer.BadParameter(f"--json and --format {form} exclude each other")
    return "json" if is_json else form or "table"
