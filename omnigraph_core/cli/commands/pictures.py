"""`omnigraph schema diagram` and `omnigraph commit graph`: a graph seen as a picture."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.drawing.history_svg import history_svg
from omnigraph_core.cli.drawing.history_text import BOXES, PLAIN, history_rows
from omnigraph_core.cli.drawing.lanes import arrange, children_first
from omnigraph_core.cli.drawing.mermaid import mermaid
from omnigraph_core.cli.drawing.schema_model import drawing_of
from omnigraph_core.cli.drawing.schema_svg import schema_svg
from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.options import MAIN, JsonOption
from omnigraph_core.cli.output import (
    has_unicode,
    is_coloured,
    moment,
    print_json,
    print_text,
)
from omnigraph_core.cli.snapshots import (
    AtOption,
    BranchOption,
    SnapshotOption,
    TagOption,
    VersionOption,
    which_snapshot,
)
from omnigraph_core.cli.target import GivenGraph, on_graph
from omnigraph_core.errors import BranchNotFound
from omnigraph_core.schema.build import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.cli.drawing.history_text import Cell, Row
    from omnigraph_core.cli.drawing.lanes import Place
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.schema.catalog import Catalog

SvgOption = Annotated[bool, typer.Option("--svg", help="As an SVG picture.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write it to this file.")
]
SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="Draw this schema (.pg), in place of a graph's."),
]
ListBranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch", metavar="NAME", help="Branch whose commits are drawn.  [default: main]"
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="The commits of all branches.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=0, help="The newest N of them.")
]
AsciiOption = Annotated[bool, typer.Option("--ascii", help="Draw with plain characters.")]

_LANE_COLOURS: Final = ("blue", "green", "magenta", "yellow", "cyan", "red")


@on_graph
def schema_diagram(
    ctx: typer.Context,
    graph: GivenGraph,
    schema: SchemaOption = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    tag: TagOption = None,
    version: VersionOption = None,
    at: AtOption = None,
    svg: SvgOption = False,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the types of a schema and the edges between them, as Mermaid text or SVG."""
    if schema is not None:
        given = (branch, snapshot, tag, version, at, *map(ctx.params.get, _GRAPH))
        if any(item is not None for item in given):
            raise typer.BadParameter("--schema and a graph exclude each other")
        catalog, title = (
            compile_schema(read_text(schema, what="schema file"), str(schema)),
            schema.stem,
        )
    else:
        usual = graph.branch(None)
        which = which_snapshot(branch, snapshot, tag, version, at, usual=usual)
        opened = graph.open()
        with graph.busy("reading the schema"):
            accepted = opened.schema_show(which.target(opened))
        catalog = compile_schema(accepted.source)
        title = graph.address
    _print_diagram(catalog, title, output, is_svg=svg, as_json=as_json)


_GRAPH: Final = ("uri", "uri_option", "target")
"""Parameters that name a graph."""


def _print_diagram(
    catalog: Catalog, title: str, output: Path | None, *, is_svg: bool, as_json: bool
) -> None:
    drawing = drawing_of(catalog)
    text = schema_svg(drawing, title=f"schema of {title}") if is_svg else mermaid(drawing)
    if as_json:
        print_json({"format": "svg" if is_svg else "mermaid", "diagram": text})
    else:
        print_text(text, output)


@on_graph
def commit_graph(
    graph: GivenGraph,
    branch: ListBranchOption = None,
    all_branches: AllOption = False,
    limit: LimitOption = None,
    svg: SvgOption = False,
    output: OutputOption = None,
    ascii_only: AsciiOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw commits with the lines of branches and merges, the newest at the top."""
    if branch is not None and all_branches:
        raise typer.BadParameter("--branch and --all exclude each other")
    opened = graph.open()
    with graph.busy("reading commits"):
        names = opened.branch_list()
        shown = names if all_branches else (graph.branch(branch),)
        places = arrange(islice(children_first(_commits(opened, shown, limit)), limit))
        signs = _signs(opened, names)
    if as_json:
        print_json({"uri": graph.address, "commits": [_document(item, signs) for item in places]})
    elif svg:
        title = f"commits of {graph.address}"
        print_text(
            history_svg(places, lambda item: _words(item.commit, signs), title=title), output
        )
    else:
        has_colours = output is None and is_coloured(sys.stdout)
        lines = _lines(
            places, signs, is_plain=ascii_only or not has_unicode(), has_colours=has_colours
        )
        print_text("".join(f"{line}\n" for line in lines), output)


def _commits(
    graph: Omnigraph, branches: Sequence[str], limit: int | None
) -> tuple[GraphCommit, ...]:
    """The commits of the branches, each once; enough of each for the newest of all."""
    found = {}
    for name in branches:
        try:
            commits = graph.list_commits(name, limit=limit)
        except BranchNotFound:
            if len(branches) == 1:
                raise
            continue  # deleted since it was listed
        found.update({commit.graph_commit_id: commit for commit in commits})
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Signs:
    """What points at commits, by their ids."""

    branches: Mapping[str, Sequence[str]]
    tags: Mapping[str, Sequence[str]]

    def at(self, commit: GraphCommit) -> str:
        names = [*self.branches.get(commit.graph_commit_id, ())]
        names += [f"tag:{name}" for name in self.tags.get(commit.graph_commit_id, ())]
        return f" ({', '.join(names)})" if names else ""


def _signs(graph: Omnigraph, branches: Sequence[str]) -> Signs:
    heads, tags = defaultdict(list), defaultdict(list)
    for name in branches:
        try:
            heads[graph.head_commit_id_for_branch(name)].append(name)
        except BranchNotFound:
            continue  # deleted since it was listed
    for tag in graph.tag_list():
        tags[tag.commit_id].append(tag.tag)
    return Signs(heads, tags)


def _document(place: Place, signs: Signs) -> dict[str, object]:
    commit = place.commit
    pointing = {
        "branches": list(signs.branches.get(commit.graph_commit_id, ())),
        "tags": list(signs.tags.get(commit.graph_commit_id, ())),
    }
    return {**commit.to_json(), "lane": place.lane, **pointing}


def _lines(
    places: Sequence[Place], signs: Signs, *, is_plain: bool, has_colours: bool
) -> Iterator[str]:
    for row in history_rows(places, PLAIN if is_plain else BOXES):
        yield _line(row, signs, has_colours=has_colours)


def _line(row: Row, signs: Signs, *, has_colours: bool) -> str:
    drawn = "".join(map(_coloured, row.cells)) if has_colours else row.text
    if row.place is None:
        return drawn.rstrip()
    named, rest = _words(row.place.commit, signs)
    return f"{drawn}{typer.style(named, bold=True) if has_colours else named} {rest}"


def _coloured(cell: Cell) -> str:
    character, lane = cell
    if character == " ":
        return character
    return typer.style(character, fg=_LANE_COLOURS[lane % len(_LANE_COLOURS)])


def _words(commit: GraphCommit, signs: Signs) -> tuple[str, str]:
    """What is told of a commit: its names, and what it is."""
    place = f"{commit.manifest_branch or MAIN} v{commit.manifest_version}"
    actor = "" if commit.actor_id is None else f" {commit.actor_id}"
    facts = f"{commit.operation} {place} {moment(commit.created_at)}{actor}"
    return f"{commit.graph_commit_id}{signs.at(commit)}", facts
