"""`omnigraph init`: make a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.options import ActorOption  # noqa: TC001 - typer reads annotations
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, init_graph
from omnigraph_core.schema.build import compile_schema

SchemaOption = Annotated[Path, typer.Option("--schema", help="Schema file (.pg).")]


def init(
    schema: SchemaOption,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    actor: ActorOption = None,
) -> None:
    """Make an empty graph with a schema."""
    address = graph_address(uri, uri_option)
    text = read_text(schema, what="schema file")
    compile_schema(text, str(schema))  # for the name of the file in what it reports
    init_graph(address, text, actor=actor)
    typer.echo(f"initialized {address}")
