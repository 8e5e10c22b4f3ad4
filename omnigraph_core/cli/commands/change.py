"""`omnigraph change`: run a mutation."""

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
    EmbedOption,
    IfCommitOption,
    JsonOption,
    KeyOption,
    NoEmbedOption,
    embed_choice,
)
from omnigraph_core.cli.output import count, print_json, print_lines
from omnigraph_core.cli.params import ParamsFileOption, ParamsOption, read_params
from omnigraph_core.cli.query_text import NameOption, problems_in
from omnigraph_core.cli.target import UriArgument, UriOption, graph_address, open_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.write.mutate import MutationResult


QueryOption = Annotated[Path, typer.Option("--query", help="Query file (.gq).")]


def change(
    query: QueryOption,
    uri: UriArgument = None,
    uri_option: UriOption = None,
    name: NameOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = MAIN,
    embed: EmbedOption = None,
    no_embed: NoEmbedOption = False,
    if_commit: IfCommitOption = None,
    idempotency_key: KeyOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a mutation: all of its statements with one commit, or none."""
    address = graph_address(uri, uri_option)
    values = read_params(params, params_file)
    how = embed_choice(embed, is_off=no_embed)
    text = read_text(query, what="query file")
    graph = open_graph(address)
    witness = Witness(graph, branch)
    with interruptible(lambda: witness.outcome("changed")), problems_in(str(query)):
        result = graph.mutate(
            text,
            values,
            name=name,
            branch=branch,
            embed=how,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            actor=actor,
        )
    if as_json:
        print_json(result.to_json())
    else:
        print_lines(_lines(result))


def _lines(result: MutationResult) -> Iterator[str]:
    done = "already changed" if result.is_repeat else "changed"
    yield (
        f"{done} branch {result.branch} with {result.query_name}: "
        f"{count(result.affected_nodes, 'node')}, {count(result.affected_edges, 'edge')}"
    )
    if result.actor_id is not None:
        yield f"actor_id: {result.actor_id}"
    if result.commit is not None:
        yield f"commit_id: {result.commit.graph_commit_id}"
