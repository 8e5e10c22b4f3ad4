"""`omnigraph branch …`: make, list, merge, reset and delete branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.confirm import YesOption, asked, can_ask, confirm
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
from omnigraph_core.cli.options import MAIN, EngineOption, IfCommitOption, JsonOption, QuietOption
from omnigraph_core.cli.output import change_lines, print_json, print_lines
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.snapshots import named_target
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import BranchNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.diff.model import ChangeSet
    from omnigraph_core.engine.omnigraph import Omnigraph
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
    bool,
    typer.Option(
        "--confirm", "--yes", "-y", help="Do it; without, what would change is shown first."
    ),
]


@app.command()
@on_graph
def create(
    graph: GivenGraph,
    name: NameArgument,
    source: FromOption = MAIN,
    as_json: JsonOption = False,
) -> None:
    """Fork a branch."""
    target = named_target(source)
    opened = graph.open()
    with graph.busy(f"making branch {name}"):
        ref = opened.branch_create(name, source=target, actor=graph.actor)
    if as_json:
        commit_id = ref.forked_from.commit_id if ref.forked_from else None
        made = {"uri": graph.address, "from": source, "name": ref.branch, "actor_id": ref.actor}
        print_json({**made, "commit_id": commit_id})
    else:
        print_lines([f"created branch {ref.branch} from {source}"])


@app.command("list")
@on_graph
def list_branches(graph: GivenGraph, as_json: JsonOption = False) -> None:
    """List all branches by name."""
    opened = graph.open()
    with graph.busy("reading branches"):
        names = sorted(opened.branch_list())
        details = list(_details(opened, names)) if as_json else []
    if as_json:
        print_json({"branches": names, "details": details})
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
@on_graph
def delete(
    graph: GivenGraph,
    name: NameArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete a branch; its commits stay readable by id until cleanup takes them."""
    opened = graph.open()
    confirm(f"delete branch {name} of {graph.address}?", is_agreed=yes)
    with graph.busy(f"deleting branch {name}"):
        opened.branch_delete(name, actor=graph.actor)
    if as_json:
        print_json({"uri": graph.address, "name": name, "actor_id": graph.actor})
    else:
        print_lines([f"deleted branch {name}"])


@app.command()
@on_graph
def merge(
    graph: GivenGraph,
    source: SourceArgument,
    into: IntoOption = MAIN,
    strategy: StrategyOption = "row",
    ours: OursOption = False,
    theirs: TheirsOption = False,
    resolve: ResolveOption = None,
    conflicts: ConflictsOption = None,
    dry_run: DryRunOption = False,
    delete_branch: DeleteOption = False,
    if_commit: IfCommitOption = None,
    engine: EngineOption = "auto",
    yes: YesOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Merge a branch into another one: all of its changes with one commit, or none."""
    choice = merge_choice(strategy, resolve, is_ours=ours, is_theirs=theirs)
    opened = graph.open()
    if delete_branch and not dry_run:
        confirm(f"merge {source} into {into} and delete {source}?", is_agreed=yes)
    witness = Witness(opened, into)
    with (
        interruptible(lambda: witness.outcome("merged")),
        reported_conflicts(conflicts),
        busy(f"merging {source} into {into}", is_quiet=quiet),
    ):
        result = opened.branch_merge(
            source,
            into=into,
            dry_run=dry_run,
            delete_branch=delete_branch,
            if_commit=if_commit,
            engine=engine,
            actor=graph.actor,
            **choice.options(),
        )
    headline = f"merged {result.source} into {result.target}"
    print_merge(result, headline, conflicts, actor=graph.actor, as_json=as_json)
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
@on_graph
def reset(
    graph: GivenGraph,
    name: NameArgument,
    to: ToOption,
    is_confirmed: ConfirmOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give a branch an earlier state, with a new commit: no history is lost.

    Without --confirm, shows what would change; on a terminal, asks then.
    """
    target = named_target(to)
    opened = graph.open()
    if not is_confirmed:
        with graph.busy(f"comparing {name} and {to}"):
            found = opened.diff_between(name, target, has_values=False, limit=0)
        _print_preview(found, name, as_json=as_json)
        # With a document for programs there is nobody to ask.
        if as_json or not can_ask() or not asked(f"reset branch {name}?"):
            typer.echo("nothing was changed: give --confirm to do it", err=True)
            return
    before = opened.head_commit_id_for_branch(name)
    witness = Witness(opened, name)
    doing = busy(f"resetting {name}", is_quiet=quiet)
    with interruptible(lambda: witness.outcome("reset")), doing:
        commit = opened.branch_reset(name, target, confirm=True, actor=graph.actor)
    if as_json:
        made = {"name": name, "from_commit_id": before, "to": to, "applied": True}
        print_json({"uri": graph.address, **made, **commit.to_json()})
    else:
        print_lines([f"reset branch {name} to {to}", f"commit_id: {commit.graph_commit_id}"])


def _print_preview(found: ChangeSet, name: str, *, as_json: bool) -> None:
    if as_json:
        stats = found.to_json(has_values=False)["stats"]
        ends = {"from_commit_id": found.from_commit_id, "to_commit_id": found.to_commit_id}
        print_json({"name": name, **ends, "applied": False, "stats": stats})
    else:
        headline = f"would reset branch {name} from {found.from_commit_id} to {found.to_commit_id}"
        print_lines([headline, *change_lines(found.stats)])
