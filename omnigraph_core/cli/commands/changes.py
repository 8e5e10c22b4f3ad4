"""What changed: `omnigraph branch diff`, `omnigraph commit changes` and `omnigraph changes …`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.change_text import block_lines, diff_lines
from omnigraph_core.cli.interrupt import interruptible
from omnigraph_core.cli.options import EngineOption, JsonOption, QuietOption
from omnigraph_core.cli.output import (
    change_lines,
    print_changes,
    print_json,
    print_json_list,
    print_lines,
    spark_lines,
)
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.snapshots import named_target
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.diff.model import ChangeFilter, ChangeOp
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from omnigraph_core.engine.diffs import OpenDiff

app = typer.Typer(help="Follow what is committed on a branch.", no_args_is_help=True)

RangeArgument = Annotated[
    str,
    typer.Argument(
        metavar="RANGE",
        help="A..B, each of them a branch, a commit id or tag:NAME.",
        show_default=False,
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The commit.", show_default=False)]
TypeOption = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only rows of this type. May be repeated."),
]
KindOption = Annotated[
    list[EntityKind] | None,
    typer.Option("--kind", metavar="KIND", help="Only `node`, or only `edge`."),
]
OpOption = Annotated[
    list[ChangeOp] | None,
    typer.Option(
        "--op", metavar="OP", help="Only `insert`, `update` or `delete`. May be repeated."
    ),
]
StatOption = Annotated[bool, typer.Option("--stat", help="Only counts, no rows.")]
NoValuesOption = Annotated[
    bool, typer.Option("--no-values", help="Ids alone: no rows before and after.")
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="List N changes; the counts are of all."),
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Branch to follow.  [default: main]")
]
CursorOption = Annotated[
    str | None,
    typer.Option(
        "--cursor", metavar="CURSOR", help="Where to go on; without, only the one of now is given."
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="ID", help="Commit of the branch to begin after.  [default: head]"
    ),
]
CommitsOption = Annotated[
    int,
    typer.Option("--commits", metavar="N", min=1, help="Commits to go through at most."),
]
PageOption = Annotated[
    int,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        help="Changes to give at most, or those of one commit.",
    ),
]


@on_graph
def diff(
    graph: GivenGraph,
    range: RangeArgument,
    types: TypeOption = None,
    kinds: KindOption = None,
    ops: OpOption = None,
    stat: StatOption = False,
    no_values: NoValuesOption = False,
    limit: LimitOption = None,
    engine: EngineOption = "auto",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what has to change for A to be as B is."""
    names = _ends(range)
    source, target = map(named_target, names)
    opened = graph.open()
    with interruptible(lambda: "the comparison was stopped"):
        with busy(f"comparing {range}", is_quiet=quiet):
            wanted = _filter(types, kinds, ops)
            found = opened.open_diff(source, target, wanted, engine=engine)
        facts = dict(zip(("uri", "from", "to"), (graph.address, *names), strict=True))
        if stat:
            _print_counts(facts, found, as_json=as_json)
        else:
            _print_changes(facts, found, limit, has_values=not no_values, as_json=as_json)


@on_graph
def commit_changes(
    graph: GivenGraph,
    commit_id: IdArgument,
    types: TypeOption = None,
    kinds: KindOption = None,
    ops: OpOption = None,
    stat: StatOption = False,
    no_values: NoValuesOption = False,
    limit: LimitOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a commit changed on its branch."""
    opened = graph.open()
    with interruptible(lambda: "the comparison was stopped"):
        with busy(f"comparing {commit_id}", is_quiet=quiet):
            found = opened.open_commit_changes(commit_id, _filter(types, kinds, ops))
        facts = {"uri": graph.address}
        if stat:
            _print_counts(facts, found, as_json=as_json)
        else:
            _print_changes(facts, found, limit, has_values=not no_values, as_json=as_json)


@app.command()
@on_graph
def poll(
    graph: GivenGraph,
    cursor: CursorOption = None,
    branch: BranchOption = None,
    types: TypeOption = None,
    kinds: KindOption = None,
    ops: OpOption = None,
    no_values: NoValuesOption = False,
    commits: CommitsOption = 128,
    limit: PageOption = 1000,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what was committed after a cursor, and the cursor to go on with."""
    on = graph.branch(branch)
    opened = graph.open()
    outcome = "nothing was given: poll with the same cursor again"
    with interruptible(lambda: outcome), busy(f"reading changes of {on}", is_quiet=quiet):
        page = opened.poll(
            cursor,
            branch=on,
            filter=_filter(types, kinds, ops),
            has_values=not no_values,
            most_commits=commits,
            most_changes=limit,
        )
    if as_json:
        body = page.to_json(has_values=not no_values)
        print_json({"uri": graph.address, "branch": on, **body})
        return
    for block in page.blocks:
        print_changes(block_lines(block))
    print_lines([f"cursor: {page.cursor}"])
    if not page.is_caught_up:
        typer.echo("there is more: poll again with this cursor", err=True)


@app.command()
@on_graph
def cursor(
    graph: GivenGraph,
    branch: BranchOption = None,
    at: AtOption = None,
    types: TypeOption = None,
    kinds: KindOption = None,
    ops: OpOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the cursor of whoever has read a branch as it is, or as it was at a commit."""
    on = graph.branch(branch)
    found = graph.open().cursor_at(at, branch=on, filter=_filter(types, kinds, ops))
    if as_json:
        print_json({"uri": graph.address, "branch": on, "cursor": found})
    else:
        print_lines([found])


def _ends(range: str) -> tuple[str, str]:
    source, dots, target = range.partition("..")
    if not dots or target.startswith("."):
        raise typer.BadParameter(f"{range!r}: expected A..B, as in main..review")
    return source, target


def _filter(
    types: list[str] | None, kinds: list[EntityKind] | None, ops: list[ChangeOp] | None
) -> ChangeFilter:
    return ChangeFilter(frozenset(kinds or ()), frozenset(types or ()), frozenset(ops or ()))


def _print_counts(facts: dict[str, str], found: OpenDiff, *, as_json: bool) -> None:
    if not as_json:
        print_lines((*change_lines(found.summary.stats), *spark_lines(found.summary)))
        return
    document = facts | found.summary.to_json()
    del document["changes"], document["complete"]
    print_json(document)


def _print_changes(
    facts: dict[str, str], found: OpenDiff, limit: int | None, *, has_values: bool, as_json: bool
) -> None:
    """Each change is printed when it is read: no more than a portion of them is in memory."""
    changes = found.iter_changes(has_values=has_values, limit=limit)
    summary = found.summary
    if not as_json:
        print_changes(diff_lines(summary.stats, changes))
        print_lines(spark_lines(summary))
        return
    is_complete = limit is None or summary.stats.total <= limit
    document = facts | replace(summary, is_complete=is_complete).to_json()
    items = (change.to_json(has_values=has_values) for change in changes)
    print_json_list(document, "changes", items)
