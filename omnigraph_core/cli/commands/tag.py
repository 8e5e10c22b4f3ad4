"""`omnigraph tag …`: names for commits that cleanup spares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.confirm import YesOption, confirm
from omnigraph_core.cli.options import MAIN, JsonOption
from omnigraph_core.cli.output import print_json, print_lines, with_actor
from omnigraph_core.cli.snapshots import named_target
from omnigraph_core.cli.target import GivenGraph, on_graph

if TYPE_CHECKING:
    from omnigraph_core.history.refs import Tag

app = typer.Typer(help="Name commits: cleanup spares what is tagged.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tag.", show_default=False)]
AtOption = Annotated[
    str,
    typer.Option("--at", metavar="TARGET", help="What to name: a branch, a commit id, tag:NAME."),
]


@app.command()
@on_graph
def create(
    graph: GivenGraph,
    name: NameArgument,
    at: AtOption = MAIN,
    as_json: JsonOption = False,
) -> None:
    """Name a commit."""
    target = named_target(at)
    opened = graph.open()
    with graph.busy(f"making tag {name}"):
        tag = opened.tag_create(name, target, actor=graph.actor)
    if as_json:
        print_json({"uri": graph.address, **_document(tag)})
    else:
        print_lines([f"created tag {tag.tag} at {tag.commit_id}"])


@app.command("list")
@on_graph
def list_tags(graph: GivenGraph, as_json: JsonOption = False) -> None:
    """List all tags by name."""
    opened = graph.open()
    with graph.busy("reading tags"):
        tags = opened.tag_list()
    if as_json:
        print_json({"tags": [_document(tag) for tag in tags]})
    else:
        print_lines(map(_line, tags))


@app.command()
@on_graph
def delete(
    graph: GivenGraph,
    name: NameArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a tag; the commit stays until cleanup takes it."""
    opened = graph.open()
    confirm(f"delete tag {name} of {graph.address}?", is_agreed=yes)
    with graph.busy(f"deleting tag {name}"):
        opened.tag_delete(name)
    if as_json:
        print_json({"uri": graph.address, "name": name})
    else:
        print_lines([f"deleted tag {name}"])


def _document(tag: Tag) -> dict[str, object]:
    return {
        "name": tag.tag,
        "commit_id": tag.commit_id,
        "branch": tag.branch,
        "manifest_version": tag.manifest_version,
        "created_at": tag.created_at,
        "actor_id": tag.actor,
    }


def _line(tag: Tag) -> str:
    place = f"branch={tag.branch} version={tag.manifest_version}"
    return with_actor(f"{tag.tag} {tag.commit_id} {place}", tag.actor)
