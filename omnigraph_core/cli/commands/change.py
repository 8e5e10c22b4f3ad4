"""`omnigraph change`: run a mutation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.cli.aliases import AliasOption, ArgsArgument, asked
from omnigraph_core.cli.interrupt import Witness, interruptible
from omnigraph_core.cli.options import (
    BranchOption,
    EmbedOption,
    IfCommitOption,
    JsonOption,
    KeyOption,
    NoEmbedOption,
    QuietOption,
    embed_choice,
)
from omnigraph_core.cli.output import count, print_json, print_lines
from omnigraph_core.cli.params import ParamsFileOption, ParamsOption, read_params
from omnigraph_core.cli.progress import busy
from omnigraph_core.cli.query_text import (
    NameOption,
    QueryOption,
    QueryStringOption,
    problems_in,
)
from omnigraph_core.cli.target import GivenGraph, on_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.write.mutate import MutationResult


@on_graph
def change(
    graph: GivenGraph,
    args: ArgsArgument = None,
    alias: AliasOption = None,
    query: QueryOption = None,
    query_string: QueryStringOption = None,
    name: NameOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    embed: EmbedOption = None,
    no_embed: NoEmbedOption = False,
    if_commit: IfCommitOption = None,
    idempotency_key: KeyOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a mutation: all of its statements with one commit, or none."""
    by_name = read_params(params, params_file)
    how = embed_choice(embed, is_off=no_embed)
    wanted = asked(
        graph,
        args,
        alias=alias,
        query=query,
        query_string=query_string,
        name=name,
        is_mutation=True,
    )
    opened, written = wanted.graph.open(), wanted.graph.branch(branch)
    witness = Witness(opened, written)
    told_in = problems_in(wanted.query.name, wanted.query.text)
    doing = busy(f"changing {written}", is_quiet=quiet)
    with interruptible(lambda: witness.outcome("changed")), told_in, doing:
        result = opened.mutate(
            wanted.query.text,
            wanted.params(by_name),
            name=wanted.name,
            branch=written,
            embed=how,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            actor=wanted.graph.actor,
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
