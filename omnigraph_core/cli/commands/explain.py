"""`omnigraph query explain`: how a query is carried out, and with `--profile` how it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.limits import EngineOption, MemoryOption, TimeoutOption, read_limits
from omnigraph_core.cli.options import JsonOption, QuietOption
from omnigraph_core.cli.output import print_json
from omnigraph_core.cli.params import ParamsFileOption, ParamsOption, read_params
from omnigraph_core.cli.progress import busy
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
from omnigraph_core.cli.target import GivenGraph, on_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.cli.query_text import QueryText

SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="Schema file (.pg), in place of a graph."),
]
ProfileOption = Annotated[
    bool, typer.Option("--profile", help="Run it: show the rows and the time of each step.")
]


@on_graph
def explain(
    graph: GivenGraph,
    schema: SchemaOption = None,
    query: QueryOption = None,
    query_string: QueryStringOption = None,
    name: NameOption = None,
    profile: ProfileOption = False,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
    engine: EngineOption = "local",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the steps a query runs as.

    With a graph: how it is carried out there, with the rows each step is expected to make. With a
    schema alone: what it does.
    """
    of_graph = {
        "--branch": branch, "--snapshot": snapshot, "--tag": tag, "--version": version, "--at": at,
        "--profile": profile or None, "--engine": None if engine == "local" else engine,
    }  # fmt: skip
    on_run = {
        "--params": params, "--params-file": params_file, "--timeout": timeout, "--memory": memory,
    }  # fmt: skip
    if schema is not None:
        _refuse({"a graph": graph.given or None, **of_graph, **on_run}, "cannot go with --schema")
        source = query_text(graph.config, query, query_string)
        _explain_schema(schema, source, name, as_json=as_json)
        return
    if not graph.is_known:
        raise typer.BadParameter(
            "a graph URI must be provided to explain the query on, or a --schema"
        )
    if not profile:
        _refuse(on_run, "goes with --profile only")
    elif engine != "local":
        raise typer.BadParameter("--engine cannot go with --profile: that runs in this process")
    which = which_snapshot(branch, snapshot, tag, version, at, usual=graph.branch(None))
    seconds, byte_count = read_limits(timeout, memory)
    values = read_params(params, params_file)
    source = query_text(graph.config, query, query_string)
    with interruptible(lambda: "the query was stopped"):
        opened = graph.open()
        running = busy("running the query" if profile else "planning", is_quiet=quiet)
        with problems_in(source.name, source.text), running:
            target = which.target(opened)
            if profile:
                report = opened.profile(
                    target, source.text, name, values, timeout=seconds, memory=byte_count
                )
            else:
                report = opened.explain(target, source.text, name, engine=engine)
    if as_json:
        print_json(report.to_json())
    else:
        typer.echo(report.text)


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise typer.BadParameter(f"{name} {why}")


def _explain_schema(schema: Path, source: QueryText, name: str | None, *, as_json: bool) -> None:
    from omnigraph_core.ir.compile import compile_one  # slow, and for this alone
    from omnigraph_core.ir.explain import explain as explain_ir
    from omnigraph_core.schema.build import compile_schema

    catalog = compile_schema(read_text(schema, what="schema file"), str(schema))
    compiled = compile_one(source.text, catalog, name, name=source.name)
    text = explain_ir(compiled.ir)
    if as_json:
        print_json({"query": compiled.ir.name, "text": text})
    else:
        typer.echo(text)
