"""Which graph a command is about, and opening it.

The engine is imported only when a graph is opened: checking a query or showing help needs no
storage, and loading it takes longer than either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

UriArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="URI",
        help="The graph: a path, file:///path or s3://bucket/prefix.",
        show_default=False,
    ),
]
UriOption = Annotated[
    str | None, typer.Option("--uri", metavar="URI", help="The graph, in place of the argument.")
]


def graph_address(argument: str | None, option: str | None) -> str:
    """The address that was given, in whichever way.

    Raises:
        typer.BadParameter: it was given twice, or not at all.
    """
    if argument is not None and option is not None:
        raise typer.BadParameter("give the URI as an argument or with --uri, not both")
    address = argument or option
    if not address:
        raise typer.BadParameter("a graph URI must be provided, as an argument or with --uri")
    return address


def open_graph(address: str) -> Omnigraph:
    """
    Raises:
        GraphNotFound: there is none at that address.
    """
    from omnigraph_core.engine.omnigraph import Omnigraph  # slow: see above

    return Omnigraph.open(address)


def init_graph(address: str, schema: str, *, actor: str | None) -> Omnigraph:
    """
    Raises:
        AlreadyExists: there is a graph at that address.
    """
    from omnigraph_core.engine.omnigraph import Omnigraph  # slow: see above

    return Omnigraph.init(address, schema, actor=actor)
