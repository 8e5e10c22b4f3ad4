"""`omnigraph init`: make a graph. `omnigraph graphs list`: which ones the configuration knows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.options import JsonOption  # noqa: TC001 - typer reads annotations
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
) -> None:
    """Make a graph: empty, with a schema, or an example.

    Writes omnigraph.yaml beside it if there is none, so that commands find the graph.
    """
    if (schema is None) == (example is None):
        raise typer.BadParameter("give a schema with --schema, or --example")
    if graph.chosen().is_remote:
        raise ConfigError("init is only supported against local repo URIs")
    address = graph.address
    if schema is not None:
        _make(graph, schema)
    if example is not None:
        _make_example(graph, example)
    typer.echo(f"initialized {address}")
    written = write_config(address)
    if written is not None and sys.stderr is not None and sys.stderr.isatty():
        typer.echo(f"wrote {written}", err=True)


def _make(graph: GivenGraph, schema: Path) -> Omnigraph:
    from omnigraph_core.engine.omnigraph import Omnigraph  # slow: the storage comes with it
    from omnigraph_core.schema.build import compile_schema

    text = read_text(schema, what="schema file")
    compile_schema(text, str(schema))  # for the name of the file in what it reports
    return Omnigraph.init(graph.address, text, actor=graph.actor)


def _make_example(graph: GivenGraph, name: str) -> None:
    schema, _, data = copy_example(name, graph.address)
    # Vectors cost a provider's time; `embed` makes them when they are wanted.
    _make(graph, schema).load(data, embed="off", actor=graph.actor)


@app.command("list")
def list_graphs(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the graphs of omnigraph.yaml: names and addresses."""
    known = GivenGraph(config=config).config.graphs
    if as_json:
        graphs = [{"name": name, "uri": graph.uri} for name, graph in known.items()]
        print_json({"graphs": graphs})
    else:
        print_lines(f"{name} {graph.uri}" for name, graph in known.items())
