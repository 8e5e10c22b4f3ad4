"""`omnigraph index …`: the indexes a schema asks for, and links that are kept as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import BranchOption, EngineOption, JsonOption, QuietOption
from omnigraph_core.cli.output import count, print_json, print_lines, spark_lines
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import ConfigError
from omnigraph_core.job_report import spark_member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.engine.indexing import IndexReport

app = typer.Typer(help="Build and list indexes, and the files of links.", no_args_is_help=True)

StatusBranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Branch to look at.  [default: main]")
]


TypesOption = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="This edge type alone. May be repeated."),
]


@app.command()
@on_graph
def ensure(
    graph: GivenGraph,
    branch: BranchOption = None,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build what is missing of every index, with at most one commit."""
    on = graph.branch(branch)
    opened = graph.open()
    witness = Witness(opened, on)
    doing = busy(f"building indexes of {on}", is_quiet=quiet)
    with interruptible(lambda: witness.outcome("built")), doing:
        reports = opened.ensure_indices(branch=on, engine=engine, actor=graph.actor)
    if as_json:
        _print_json(graph.address, on, reports, spark_member(reports))
        return
    built = [report for report in reports if report.is_built]
    indexes = "index" if len(built) == 1 else "indexes"
    header = f"built {len(built)} {indexes} of {graph.address} branch {on}"
    print_lines([header, *map(_line, built), *spark_lines(reports)])


@app.command()
@on_graph
def topology(
    graph: GivenGraph,
    branch: StatusBranchOption = None,
    type: TypesOption = None,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make the files that tell readers who is linked to whom."""
    if graph.chosen().is_remote:
        raise ConfigError("`index topology` works on a graph where it is kept, not on a server")
    on = graph.branch(branch)
    opened = graph.open()
    doing = busy(f"building the topology of {on}", is_quiet=quiet)
    with interruptible(lambda: "files that were made stay"), doing:
        reports = opened.build_topology(branch=on, edge_types=type or (), engine=engine)
    if as_json:
        edges = [report.to_json() for report in reports]
        facts = {"uri": graph.address, "branch": on}
        print_json({**facts, "edge_types": edges, **spark_member(reports)})
        return
    print_lines(f"{item.table_key} {item.outcome} {count(item.edges, 'edge')}" for item in reports)
    print_lines(spark_lines(reports))


@app.command()
@on_graph
def status(
    graph: GivenGraph, branch: StatusBranchOption = None, as_json: JsonOption = False
) -> None:
    """Show how much every index covers."""
    on = graph.branch(branch)
    opened = graph.open()
    with graph.busy("looking at indexes"):
        reports = opened.index_status(on)
    if as_json:
        _print_json(graph.address, on, reports, {})
    else:
        print_lines(map(_line, reports))


def _print_json(
    address: str, branch: str, reports: Sequence[IndexReport], more: Mapping[str, object]
) -> None:
    indexes = [report.to_json() for report in reports]
    print_json({"uri": address, "branch": branch, "indexes": indexes, **more})


def _line(report: IndexReport) -> str:
    owner = " inherited" if report.is_inherited else ""
    return (
        f"{report.table_key} {report.column} {report.kind} {report.state}{owner}"
        f" {report.covered_rows} of {count(report.rows, 'row')}"
    )
