"""`omnigraph schema …`: plan, apply and show the schema of a branch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.commands.pictures import schema_diagram
from omnigraph_core.cli.confirm import YesOption, can_ask, confirm
from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import BranchOption, JsonOption, QuietOption
from omnigraph_core.cli.output import count, print_json, print_lines, print_text
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.query_text import problems_in
from omnigraph_core.cli.snapshots import (
    AtOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.snapshots import BranchOption as ReadBranchOption
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.schema.migrate import TypeKind
from omnigraph_core.schema.migrate.steps import DropProperty, DropType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.evolve.report import PurgeReport, SchemaApplyResult, StepReport
    from omnigraph_core.schema.migrate import Step

app = typer.Typer(help="Plan, apply and show the schema of a branch.", no_args_is_help=True)

SchemaOption = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The whole new schema (.pg).")
]
PlanBranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch", metavar="NAME", help="Branch whose schema would change.  [default: main]"
    ),
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
@on_graph
def plan(
    graph: GivenGraph,
    schema: SchemaOption,
    branch: PlanBranchOption = None,
    allow_data_loss: LossOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the steps to another schema; reads no rows, changes nothing.

    Exits 0 also when a step cannot be carried out.
    """
    text = read_text(schema, what="schema file")
    on = graph.branch(branch)
    opened = graph.open()
    with problems_in(str(schema), text), graph.busy("planning"):
        report = opened.schema_plan(text, branch=on, allow_data_loss=allow_data_loss)
    if as_json:
        print_json({"uri": graph.address, **report.to_json()})
        return
    supported = "yes" if report.supported else "no"
    head = [f"schema plan for {graph.address} branch {on}", f"supported: {supported}"]
    print_lines([*head, *_step_lines(report.steps)])


@app.command()
@on_graph
def apply(
    graph: GivenGraph,
    schema: SchemaOption,
    branch: BranchOption = None,
    allow_data_loss: LossOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Bring a schema into force: everything with one commit, or nothing."""
    text = read_text(schema, what="schema file")
    on = graph.branch(branch)
    opened = graph.open()
    with problems_in(str(schema), text):
        if allow_data_loss and not dry_run and not yes:
            _ask_for_losses(opened, text, on)
        witness = Witness(opened, on)
        doing = busy(f"applying the schema to {on}", is_quiet=quiet)
        with interruptible(lambda: witness.outcome("changed")), doing:
            result = opened.schema_apply(
                text, branch=on, allow_data_loss=allow_data_loss, dry_run=dry_run, actor=graph.actor
            )
    if as_json:
        print_json({"uri": graph.address, **result.to_json()})
    else:
        head = f"schema apply for {graph.address} branch {on}"
        print_lines([head, *_result_lines(result)])


def _ask_for_losses(graph: Omnigraph, text: str, branch: str) -> None:
    """Tell a person what would go for good, and ask."""
    if not can_ask():
        return
    report = graph.schema_plan(text, branch=branch, allow_data_loss=True)
    lost = _losses([item.step for item in report.steps])
    for step in lost:
        typer.echo(f"- {step.describe()}", err=True)
    if lost:
        confirm(f"take this away from {branch} for good?", is_agreed=False)


@app.command()
@on_graph
def show(
    graph: GivenGraph,
    branch: ReadBranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the schema in force, as it was given."""
    which = which_snapshot(branch, snapshot, tag, version, at, usual=graph.branch(None))
    opened = graph.open()
    with graph.busy("reading the schema"):
        accepted = opened.schema_show(which.target(opened))
    if as_json:
        print_json({"schema_source": accepted.source, "schema_hash": accepted.hash})
    else:
        print_text(accepted.source if accepted.source.endswith("\n") else f"{accepted.source}\n")


app.command("get", help="Another name for `show`.")(show)
app.command("diagram")(schema_diagram)


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
    lost = _losses(steps)
    if lost:
        types = sum(isinstance(item, DropType) for item in lost)
        properties = len(lost) - types
        told = [count(types, "type")] if types else []
        if properties:
            told.append("1 property" if properties == 1 else f"{properties} properties")
        what = "it was" if len(lost) == 1 else "any of them was"
        yield f"{', '.join(told)} dropped; if {what} renamed, write `@rename_from`"


def _losses(steps: Sequence[Step]) -> list[DropType | DropProperty]:
    """Steps after which there is less data."""
    drops = [item for item in steps if isinstance(item, DropType | DropProperty)]
    return [item for item in drops if item.type_kind is not TypeKind.INTERFACE]


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
