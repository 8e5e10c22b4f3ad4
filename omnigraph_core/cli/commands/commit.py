"""`omnigraph commit …`: what was committed, taken back, or done once more elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.commands.pictures import commit_graph
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
from omnigraph_core.cli.options import MAIN, BranchOption, JsonOption, QuietOption
from omnigraph_core.cli.output import key_values, moment, print_json, print_lines, with_actor
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.target import GivenGraph, on_graph

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit

app = typer.Typer(help="Look at commits, take them back, repeat them.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The commit.", show_default=False)]
ListBranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch", metavar="NAME", help="Branch whose commits are listed.  [default: main]"
    ),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=0, help="The newest N of them.")
]
IntoOption = Annotated[str, typer.Option("--into", metavar="NAME", help="Branch to write to.")]


@app.command("list")
@on_graph
def list_commits(
    graph: GivenGraph,
    branch: ListBranchOption = None,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the commits a branch contains, newest first."""
    opened = graph.open()
    with graph.busy("reading commits"):
        commits = opened.list_commits(graph.branch(branch), limit=limit)
    if as_json:
        print_json({"commits": [commit.to_json() for commit in commits]})
    else:
        print_lines(map(_line, commits))


@app.command()
@on_graph
def show(graph: GivenGraph, commit_id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one commit."""
    opened = graph.open()
    with graph.busy("looking for the commit"):
        commit = opened.get_commit(commit_id)
    if as_json:
        print_json(commit.to_json())
    else:
        members = commit.to_json() | {"manifest_branch": commit.manifest_branch or MAIN}
        print_lines(key_values(members))


@app.command()
@on_graph
def revert(
    graph: GivenGraph,
    commit_id: IdArgument,
    branch: BranchOption = None,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take back what a commit changed, with a new commit."""
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    opened = graph.open()
    on = graph.branch(branch)
    witness = Witness(opened, on)
    with (
        interruptible(lambda: witness.outcome("reverted")),
        reported_conflicts(conflicts),
        busy(f"reverting {commit_id} on {on}", is_quiet=quiet),
    ):
        result = opened.revert(
            commit_id, branch=on, dry_run=dry_run, actor=graph.actor, **choice.options()
        )
    headline = f"reverted {commit_id} on {result.target}"
    print_merge(result, headline, conflicts, actor=graph.actor, as_json=as_json)


@on_graph
def pick(
    graph: GivenGraph,
    commit_id: IdArgument,
    into: IntoOption = MAIN,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make the changes of one commit on another branch."""
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    opened = graph.open()
    witness = Witness(opened, into)
    with (
        interruptible(lambda: witness.outcome("picked")),
        reported_conflicts(conflicts),
        busy(f"picking {commit_id} into {into}", is_quiet=quiet),
    ):
        result = opened.cherry_pick(
            commit_id, into=into, dry_run=dry_run, actor=graph.actor, **choice.options()
        )
    headline = f"picked {commit_id} into {result.target}"
    print_merge(result, headline, conflicts, actor=graph.actor, as_json=as_json)


app.command("pick")(pick)
app.command("cherry-pick")(pick)
app.command("graph")(commit_graph)


def _line(commit: GraphCommit) -> str:
    place = f"branch={commit.manifest_branch or MAIN} version={commit.manifest_version}"
    line = with_actor(f"{commit.graph_commit_id} {place}", commit.actor_id)
    return f"{line} operation={commit.operation} time={moment(commit.created_at)}"
