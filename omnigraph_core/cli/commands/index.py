"""`omnigraph index …`: the indexes a schema asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import MAIN, ActorOption, BranchOption, JsonOption
from omnigraph_core.cli.output import count, print_json, print_lines
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.engine.indexing import IndexReport

app = typer.Typer(help="Build and list the indexes a schema asks for.", no_args_is_help=True)

StatusBranchOption = Annotated[
    str, typer.Option("--branch", metavar="NAME", help="Branch to look at.")
]


@app.command()
def ensure(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: BranchOption = MAIN,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build what is missing of every index, with at most one commit."""
    address = graph_address(uri, uri_option)
    graph = open_graph(address)
    witness = Witness(graph, branch)
    with interruptible(lambda: witness.outcome("built")):
        reports = graph.ensure_indices(branch=branch, actor=actor)
    if as_json:
        _print_json(address, branch, reports)
        return
    built = [report for report in reports if report.is_built]
    indexes = "index" if len(built) == 1 else "indexes"
    print_lines([f"built {len(built)} {indexes} of {address} branch {branch}", *map(_line, built)])


@app.command()
def status(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: StatusBranchOption = MAIN,
    as_json: JsonOption = False,
) -> None:
    """Show how much every index covers."""
    address = graph_address(uri, uri_option)
    reports = open_graph(address).index_status(branch)
    if as_json:
        _print_json(address, branch, reports)
    else:
        print_lines(map(_line, reports))


def _print_json(address: str, branch: str, reports: Sequence[IndexReport]) -> None:
    indexes = [report.to_json() for report in reports]
    print_json({"uri": address, "branch": branch, "indexes": indexes})


def _line(report: IndexReport) -> str:
    owner = " inherited" if report.is_inherited else ""
    return (
        f"{report.table_key} {report.column} {report.kind} {report.state}{owner}"
        f" {report.covered_rows} of {count(report.rows, 'row')}"
    )
