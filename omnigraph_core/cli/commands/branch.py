"""`omnigraph branch …`: make, list, merge, reset and delete branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
from omnigraph_core.cli.options import MAIN, ActorOption, IfCommitOption, JsonOption
from omnigraph_core.cli.output import change_lines, print_json, print_lines
from omnigraph_core.cli.snapshots import named_target
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph
from omnigraph_core.errors import BranchNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.merge.model import MergeResult

app = typer.Typer(help="Make, list, merge, reset and delete branches.", no_args_is_help=True)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The branch.", show_default=False)
]
SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="The branch to merge.", show_default=False)
]
FromOption = Annotated[
    str,
    typer.Option("--from", metavar="TARGET", help="What to fork: a branch, a commit id, tag:NAME."),
]
IntoOption = Annotated[str, typer.Option("--into", metavar="NAME", help="Branch to merge into.")]
DeleteOption = Annotated[
    bool, typer.Option("--delete-branch", help="Delete the source once it is merged.")
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to", metavar="TARGET", help="State to take on: a commit id, a branch, tag:NAME."
    ),
]
ConfirmOption = Annotated[
    bool, typer.Option("--confirm", help="Do it; without, only what would change is shown.")
]


@app.command()
def create(
    name: NameArgument,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    source: FromOption = MAIN,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fork a branch."""
    address = graph_address(uri, uri_option)
    target = named_target(source)
    ref = open_graph(address).branch_create(name, source=target, actor=actor)
    if as_json:
        commit_id = ref.forked_from.commit_id if ref.forked_from else None
        made = {"uri": address, "from": source, "name": ref.branch, "actor_id": actor}
        print_json({**made, "commit_id": commit_id})
    else:
        print_lines([f"created branch {ref.branch} from {source}"])


@app.command("list")
def list_branches(
    uri: UriArgument = None, uri_option: UriOption = None, as_json: JsonOption = False
) -> None:
    """List all branches by name."""
    graph = open_graph(graph_address(uri, uri_option))
    names = sorted(graph.branch_list())
    if as_json:
        print_json({"branches": names, "details": list(_details(graph, names))})
    else:
        print_lines(names)


def _details(graph: Omnigraph, names: list[str]) -> Iterator[dict[str, object]]:
    for name in names:
        try:
            ref, head = graph.branch_get(name), graph.snapshot(name)
        except BranchNotFound:
            continue  # deleted since it was listed
        fork = ref.forked_from
        yield {
            "name": name,
            "commit_id": head.commit.graph_commit_id,
            "manifest_version": head.manifest_version,
            "from": None if fork is None else fork.branch,
            "from_commit_id": None if fork is None else fork.commit_id,
            "created_at": None if fork is None else ref.created_at,
            "actor_id": ref.actor,
        }


@app.command()
def delete(
    name: NameArgument,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a branch; its commits stay readable by id until cleanup takes them."""
    address = graph_address(uri, uri_option)
    open_graph(address).branch_delete(name, actor=actor)
    if as_json:
        print_json({"uri": address, "name": name, "actor_id": actor})
    else:
        print_lines([f"deleted branch {name}"])


@app.command()
def merge(
    source: SourceArgument,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    into: IntoOption = MAIN,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    delete_branch: DeleteOption = False,
    if_commit: IfCommitOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge a branch into another one: all of its changes with one commit, or none."""
    address = graph_address(uri, uri_option)
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    graph = open_graph(address)
    witness = Witness(graph, into)
    with interruptible(lambda: witness.outcome("merged")), reported_conflicts(conflicts):
        result = graph.branch_merge(
            source,
            into=into,
            dry_run=dry_run,
            delete_branch=delete_branch,
            if_commit=if_commit,
            actor=actor,
            **choice.options(),
        )
    headline = f"merged {result.source} into {result.target}"
    print_merge(result, headline, conflicts, actor=actor, as_json=as_json)
    if delete_branch and not dry_run:
        _tell_deletion(result)


def _tell_deletion(result: MergeResult) -> None:
    """What there is to say on a branch that was to be deleted, beside that it was."""
    note = "" if result.source_note is None else f": {result.source_note}"
    if not result.is_source_deleted:
        typer.echo(f"the branch {result.source} was not deleted{note}", err=True)
    elif note:
        typer.echo(f"the branch {result.source} was deleted{note}", err=True)


@app.command()
def reset(
    name: NameArgument,
    to: ToOption,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    confirm: ConfirmOption = False,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a branch an earlier state, with a new commit: no history is lost."""
    address = graph_address(uri, uri_option)
    target = named_target(to)
    graph = open_graph(address)
    if not confirm:
        _preview_reset(graph, name, target, as_json=as_json)
        return
    before = graph.head_commit_id_for_branch(name)
    witness = Witness(graph, name)
    with interruptible(lambda: witness.outcome("reset")):
        commit = graph.branch_reset(name, target, confirm=True, actor=actor)
    if as_json:
        made = {"name": name, "from_commit_id": before, "to": to, "applied": True}
        print_json({"uri": address, **made, **commit.to_json()})
    else:
        print_lines([f"reset branch {name} to {to}", f"commit_id: {commit.graph_commit_id}"])


def _preview_reset(graph: Omnigraph, name: str, target: ReadTarget, *, as_json: bool) -> None:
    found = graph.diff_between(name, target, has_values=False, limit=0)
    if as_json:
        stats = found.to_json(has_values=False)["stats"]
        ends = {"from_commit_id": found.from_commit_id, "to_commit_id": found.to_commit_id}
        print_json({"name": name, **ends, "applied": False, "stats": stats})
    else:
        headline = f"would reset branch {name} from {found.from_commit_id} to {found.to_commit_id}"
        print_lines([headline, *change_lines(found.stats)])
    typer.echo("nothing was changed: give --confirm to do it", err=True)
