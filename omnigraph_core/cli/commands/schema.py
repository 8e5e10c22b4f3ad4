"""`omnigraph schema …`: plan, apply and show the schema of a branch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import (
    MAIN,
    ActorOption,
    BranchOption,
    JsonOption,
)
from omnigraph_core.cli.output import count, print_json, print_lines
from omnigraph_core.cli.query_text import problems_in
from omnigraph_core.cli.snapshots import (
    AtOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.snapshots import BranchOption as ReadBranchOption
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph
from omnigraph_core.schema.migrate import TypeKind
from omnigraph_core.schema.migrate.steps import DropProperty, DropType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.evolve.report import PurgeReport, SchemaApplyResult, StepReport
    from omnigraph_core.schema.migrate import Step

app = typer.Typer(help="Plan, apply and show the schema of a branch.", no_args_is_help=True)

SchemaOption = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The whole new schema (.pg).")
]
PlanBranchOption = Annotated[
    str, typer.Option("--branch", metavar="NAME", help="Branch whose schema would change.")
]
LossOption = Annotated[
    bool,
    typer.Option(
        "--allow-data-loss",
        help="Drops take their data away for good, older versions of the branch too.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Plan and check the rows, change nothing.")
]


@app.command()
def plan(
    schema: SchemaOption,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: PlanBranchOption = MAIN,
    allow_data_loss: LossOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the steps to another schema; reads no rows, changes nothing.

    Exits 0 also when a step cannot be carried out.
    """
    address = graph_address(uri, uri_option)
    text = read_text(schema, what="schema file")
    graph = open_graph(address)
    with problems_in(str(schema)):
        report = graph.schema_plan(text, branch=branch, allow_data_loss=allow_data_loss)
    if as_json:
        print_json({"uri": address, **report.to_json()})
        return
    supported = "yes" if report.supported else "no"
    head = [f"schema plan for {address} branch {branch}", f"supported: {supported}"]
    print_lines([*head, *_step_lines(report.steps)])


@app.command()
def apply(
    schema: SchemaOption,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: BranchOption = MAIN,
    allow_data_loss: LossOption = False,
    dry_run: DryRunOption = False,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a schema into force: everything with one commit, or nothing."""
    address = graph_address(uri, uri_option)
    text = read_text(schema, what="schema file")
    graph = open_graph(address)
    witness = Witness(graph, branch)
    with interruptible(lambda: witness.outcome("changed")), problems_in(str(schema)):
        result = graph.schema_apply(
            text, branch=branch, allow_data_loss=allow_data_loss, dry_run=dry_run, actor=actor
        )
    if as_json:
        print_json({"uri": address, **result.to_json()})
    else:
        head = f"schema apply for {address} branch {branch}"
        print_lines([head, *_result_lines(result)])


@app.command()
def show(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: ReadBranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the schema in force, as it was given."""
    which = which_snapshot(branch, snapshot, tag, version, at)
    graph = open_graph(graph_address(uri, uri_option))
    accepted = graph.schema_show(which.target(graph))
    if as_json:
        print_json({"schema_source": accepted.source, "schema_hash": accepted.hash})
    else:
        typer.echo(accepted.source, nl=not accepted.source.endswith("\n"))


app.command("get", help="Another name for `show`.")(show)


def _result_lines(result: SchemaApplyResult) -> Iterator[str]:
    yield "supported: yes"
    yield f"applied: {'yes' if result.applied else 'no'}{' (dry run)' if result.is_dry_run else ''}"
    yield f"manifest_version: {result.manifest_version}"
    if result.commit is not None:
        yield f"commit_id: {result.commit.graph_commit_id}"
    yield from _step_lines(result.steps)
    if result.purge is not None:
        yield from _purge_lines(result.purge)


def _step_lines(steps: Sequence[StepReport]) -> Iterator[str]:
    if not steps:
        yield "no schema changes"
    for report in steps:
        rows = f" {count(report.row_count, 'row')}" if report.row_count else ""
        yield f"- {report.step.describe()}{rows}"
    yield from _drop_lines([report.step for report in steps])


def _drop_lines(steps: Sequence[Step]) -> Iterator[str]:
    """A forgotten hint looks like a drop and an addition."""
    drops = [item for item in steps if isinstance(item, DropType | DropProperty)]
    lost = [item for item in drops if item.type_kind is not TypeKind.INTERFACE]
    if lost:
        types = sum(isinstance(item, DropType) for item in lost)
        properties = len(lost) - types
        told = [count(types, "type")] if types else []
        if properties:
            told.append("1 property" if properties == 1 else f"{properties} properties")
        what = "it was" if len(lost) == 1 else "any of them was"
        yield f"{', '.join(told)} dropped; if {what} renamed, write `@rename_from`"


def _purge_lines(purge: PurgeReport) -> Iterator[str]:
    if purge.problem is not None:
        yield f"purge failed, run `cleanup`: {purge.problem}"
        return
    removed = f"{count(purge.versions_removed, 'version')}, {purge.bytes_removed} bytes"
    yield f"purged: {removed}"
    for holder in purge.held_by:
        yield f"still holding dropped data: {holder}"
    if purge.held_by:
        hours = f"{purge.grace_seconds / 3600:g} h"
        yield f"run `cleanup` after {hours}, once nothing above needs it, to take the rest away"
