"""`omnigraph run …`: work on a branch of its own, published or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from omnigraph_core.cli.confirm import YesOption, confirm
from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.merging import (
    ConflictsOption,
    DryRunOption,
    OursOption,
    ResolveOption,
    StrategyOption,
    TheirsOption,
    merge_choice,
    print_merge,
    reported_conflicts,
)
from omnigraph_core.cli.options import MAIN, JsonOption, QuietOption
from omnigraph_core.cli.output import key_values, print_json, print_lines, with_actor
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import PolicyDenied

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.runs import RunRecord

app = typer.Typer(help="Work out of sight of a branch, and publish it.", no_args_is_help=True)

# Spelled out like the other enums of the storage code; a test compares them.
Status: TypeAlias = Literal["running", "published", "failed", "aborted"]

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The run.", show_default=False)]
TargetOption = Annotated[
    str,
    typer.Option("--target-branch", metavar="NAME", help="Branch the work is to be published to."),
]
HashOption = Annotated[
    str | None,
    typer.Option(
        "--operation-hash",
        metavar="TEXT",
        help="Names the work: if it is running or published, that run is the answer.",
    ),
]
StatusOption = Annotated[Status | None, typer.Option("--status", help="Only runs in this state.")]
ListTargetOption = Annotated[
    str | None, typer.Option("--target-branch", metavar="NAME", help="Only runs of this branch.")
]


@app.command()
@on_graph
def begin(
    graph: GivenGraph,
    target_branch: TargetOption = MAIN,
    operation_hash: HashOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a run: write to the branch it names."""
    opened = graph.open()
    with graph.busy("beginning a run"):
        run = opened.begin_run(target_branch, operation_hash=operation_hash, actor=graph.actor)
    _print(run, as_json=as_json)


@app.command("list")
@on_graph
def list_runs(
    graph: GivenGraph,
    status: StatusOption = None,
    target_branch: ListTargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, oldest first."""
    opened = graph.open()
    with graph.busy("reading runs"):
        found = opened.list_runs(target_branch=target_branch)
    runs = [run for run in found if status in (None, run.status)]
    if as_json:
        print_json({"runs": [run.to_json() for run in runs]})
    else:
        print_lines(map(_line, runs))


@app.command()
@on_graph
def show(graph: GivenGraph, run_id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one run."""
    opened = graph.open()
    with graph.busy("looking for the run"):
        run = opened.get_run(run_id)
    _print(run, as_json=as_json)


@app.command()
@on_graph
def publish(
    graph: GivenGraph,
    run_id: IdArgument,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Merge a run's work into its target. Repeating it is harmless."""
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    opened = graph.open()
    doing = busy(f"publishing {run_id}", is_quiet=quiet)
    if dry_run:
        with doing:
            result = opened.preview_run(run_id, **choice.options())
        headline = f"published {run_id} to {result.target}"
        print_merge(result, headline, conflicts, actor=graph.actor, as_json=as_json)
        return
    witness = Witness(opened, _try_target(opened, run_id))
    with interruptible(lambda: witness.outcome("published")), reported_conflicts(conflicts), doing:
        run = opened.publish_run(run_id, actor=graph.actor, **choice.options())
    _print(run, as_json=as_json)


def _try_target(graph: Omnigraph, run_id: str) -> str | None:
    """The branch a run is aimed at; None if the actor may publish runs and not look at them."""
    try:
        return graph.get_run(run_id).target_branch
    except PolicyDenied:
        return None


@app.command()
@on_graph
def abort(
    graph: GivenGraph,
    run_id: IdArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give a run up; its branch goes."""
    opened = graph.open()
    confirm(f"give up run {run_id} and what it has written?", is_agreed=yes)
    with graph.busy(f"giving up {run_id}"):
        run = opened.abort_run(run_id)
    _print(run, as_json=as_json)


@app.command()
@on_graph
def fail(
    graph: GivenGraph,
    run_id: IdArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Record that a run's work has failed; its branch goes."""
    opened = graph.open()
    confirm(f"record run {run_id} as failed and drop what it has written?", is_agreed=yes)
    with graph.busy(f"giving up {run_id}"):
        run = opened.fail_run(run_id)
    _print(run, as_json=as_json)


def _print(run: RunRecord, *, as_json: bool) -> None:
    if as_json:
        print_json(run.to_json())
        return
    members: dict[str, object] = {
        "run_id": run.run_id,
        "status": f"{run.status}{_mark(run)}",
        "target_branch": run.target_branch,
        "run_branch": run.run_branch,
        "base_snapshot_id": run.base_snapshot_id,
        "base_manifest_version": run.base_manifest_version,
        "actor_id": run.actor_id,
        "operation_hash": run.operation_hash,
        "published_snapshot_id": run.published_snapshot_id,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    }
    print_lines(key_values(members))


def _line(run: RunRecord) -> str:
    place = f"target={run.target_branch} branch={run.run_branch}"
    return with_actor(f"{run.run_id} {run.status} {place}", run.actor_id) + _mark(run)


def _mark(run: RunRecord) -> str:
    return " (expired)" if run.is_expired else ""
