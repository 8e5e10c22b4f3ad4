"""`omnigraph commit …`: what was committed, taken back, or done once more elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

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
from omnigraph_core.cli.options import MAIN, ActorOption, BranchOption, JsonOption
from omnigraph_core.cli.output import key_values, print_json, print_lines, with_actor
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit

app = typer.Typer(help="Look at commits, take them back, repeat them.", no_args_is_help=True)

_EPOCH: Final = datetime.fromtimestamp(0, UTC)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The commit.", show_default=False)]
ListBranchOption = Annotated[
    str, typer.Option("--branch", metavar="NAME", help="Branch whose commits are listed.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=0, help="The newest N of them.")
]
IntoOption = Annotated[str, typer.Option("--into", metavar="NAME", help="Branch to write to.")]


@app.command("list")
def list_commits(
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: ListBranchOption = MAIN,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the commits a branch contains, newest first."""
    graph = open_graph(graph_address(uri, uri_option))
    commits = graph.list_commits(branch, limit=limit)
    if as_json:
        print_json({"commits": [commit.to_json() for commit in commits]})
    else:
        print_lines(map(_line, commits))


@app.command()
def show(
    commit_id: IdArgument,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one commit."""
    commit = open_graph(graph_address(uri, uri_option)).get_commit(commit_id)
    if as_json:
        print_json(commit.to_json())
    else:
        members = commit.to_json() | {"manifest_branch": commit.manifest_branch or MAIN}
        print_lines(key_values(members))


@app.command()
def revert(
    commit_id: IdArgument,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    branch: BranchOption = MAIN,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back what a commit changed, with a new commit."""
    address = graph_address(uri, uri_option)
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    graph = open_graph(address)
    witness = Witness(graph, branch)
    with interruptible(lambda: witness.outcome("reverted")), reported_conflicts(conflicts):
        result = graph.revert(
            commit_id, branch=branch, dry_run=dry_run, actor=actor, **choice.options()
        )
    headline = f"reverted {commit_id} on {result.target}"
    print_merge(result, headline, conflicts, actor=actor, as_json=as_json)


def pick(
    commit_id: IdArgument,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    into: IntoOption = MAIN,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the changes of one commit on another branch."""
    address = graph_address(uri, uri_option)
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    graph = open_graph(address)
    witness = Witness(graph, into)
    with interruptible(lambda: witness.outcome("picked")), reported_conflicts(conflicts):
        result = graph.cherry_pick(
            commit_id, into=into, dry_run=dry_run, actor=actor, **choice.options()
        )
    headline = f"picked {commit_id} into {result.target}"
    print_merge(result, headline, conflicts, actor=actor, as_json=as_json)


app.command("pick")(pick)
app.command("cherry-pick")(pick)


def _line(commit: GraphCommit) -> str:
    place = f"branch={commit.manifest_branch or MAIN} version={commit.manifest_version}"
    line = with_actor(f"{commit.graph_commit_id} {place}", commit.actor_id)
    # To the microsecond: `--at` with it finds this commit, not the one before.
    made = _EPOCH + timedelta(microseconds=commit.created_at)
    return f"{line} operation={commit.operation} time={made:%Y-%m-%dT%H:%M:%S.%fZ}"
