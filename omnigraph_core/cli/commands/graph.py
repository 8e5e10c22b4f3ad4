"""`omnigraph init`: make a graph. `omnigraph graphs list`: which ones the configuration knows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.options import JsonOption, QuietOption
from omnigraph_core.cli.output import print_json, print_lines
from omnigraph_core.cli.scaffold import EXAMPLES, copy_example, write_config
from omnigraph_core.cli.target import ConfigOption, GivenGraph, on_graph
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

app = typer.Typer(help="Graphs by name.", no_args_is_help=True)

SchemaOption = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="Schema file (.pg).")
]
ExampleOption = Annotated[
    str | None,
    typer.Option(
        "--example",
        metavar="[NAME]",
        help="Make an example, in place of an empty graph: its schema, queries and data are "
        f"written beside the graph and loaded.  [names: {', '.join(EXAMPLES)}]",
    ),
]


class ExampleCommand(TyperCommand):
    """A command whose `--example` may stand without a name: then it is the first one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        after = args[args.index("--example") + 1 :] if "--example" in args else list(EXAMPLES)
        if not after or after[0] not in EXAMPLES:
            place = len(args) - len(after)
            args = [*args[:place], EXAMPLES[0], *after]
        return super().parse_args(ctx, args)


@on_graph
def init(
    graph: GivenGraph,
    schema: SchemaOption = None,
    example: ExampleOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a graph: empty, with a schema, or an example.

    Writes omnigraph.yaml beside it if there is none, so that commands find the graph.
    """
    if (schema is None) == (example is None):
        raise typer.BadParameter("give a schema with --schema, or --example")
    if graph.chosen().is_remote:
        raise ConfigError("init is only supported against local repo URIs")
    address = graph.address
    with interruptible(lambda: f"there may be a graph at {address} now"):
        made = _make(graph, schema) if schema is not None else _make_example(graph, example or "")
    written = _write_config(address)
    if as_json:
        commit_id = made.head_commit_id_for_branch()
        print_json({"uri": address, "commit_id": commit_id, "config": written and str(written)})
        return
    print_lines([f"initialized {address}"])
    if written is not None and sys.stderr is not None and sys.stderr.isatty():
        typer.echo(f"wrote {written}", err=True)


def _make(graph: GivenGraph, schema: Path) -> Omnigraph:
    from omnigraph_core.engine.omnigraph import Omnigraph  # slow: the storage comes with it
    from omnigraph_core.schema.build import compile_schema

    text = read_text(schema, what="schema file")
    compile_schema(text, str(schema))  # for the name of the file in what it reports
    with graph.busy(f"making {graph.address}"):
        return Omnigraph.init(graph.address, text, actor=graph.actor)


def _make_example(graph: GivenGraph, name: str) -> Omnigraph:
    schema, _, data = copy_example(name, graph.address)
    made = _make(graph, schema)
    with graph.busy(f"loading {data.name}"):
        # Vectors cost a provider's time; `embed` makes them when they are wanted.
        made.load(data, embed="off", actor=graph.actor)
    return made


def _write_config(address: str) -> Path | None:
    """The configuration is a help for later: the graph is there without it, too."""
    try:
        return write_config(address)
    except ConfigError as refused:
        typer.echo(f"note: {refused}", err=True)
        return None


@app.command("list")
def list_graphs(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the graphs of omnigraph.yaml: names and addresses."""
    known = GivenGraph(config=config).config.graphs
    if as_json:
        graphs = [{"name": name, "uri": graph.uri} for name, graph in known.items()]
        print_json({"graphs": graphs})
    else:
        print_lines(f"{name} {graph.uri}" for name, graph in known.items())
