"""A policy, whoever asks it: the same is allowed, and denials are the same errors."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest

from omnigraph_core import connect
from omnigraph_core.errors import BranchNotFound, PolicyDenied
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.policy.source import PolicyFile
from tests.behaviour.stock import AMOUNTS, SCHEMA, amounts, bin_, lines, put
from tests.support.server import serving, tokens
from tests.support.ways import facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.ways import Place

RULES = """
version: 1
groups: {team: [ada, bob], leads: [ada]}
protected_branches: [main]
rules:
  - {id: team-read, allow: {actors: {group: team}, actions: [read, export]}}
  - {id: team-write, allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}}
  - id: team-fork
    allow: {actors: {group: team}, actions: [branch_create], target_branch_scope: unprotected}
  - id: leads-promote
    allow:
      actors: {group: leads}
      actions: [branch_merge, schema_apply]
      target_branch_scope: protected
"""


@contextmanager
def judged(place: Place, actor: str, directory: Path) -> Iterator[Omnigraph]:
    """The graph in the hands of somebody, by the policy: at hand, or behind a server of its own."""
    file = directory / "policy.yaml"
    file.write_text(RULES)
    if not place.way.is_remote:
        with connect(place.graph.uri, policy=PolicyFile(file, "stock"), actor=actor) as graph:
            yield cast("Omnigraph", graph)
        return
    config = directory / "omnigraph.yaml"
    document = {
        "graphs": {"stock": {"uri": place.at_hand.uri}},
        "policy": {"file": str(file)},
    }
    config.write_text(json.dumps(document))
    names = {name: f"token-of-{name}" for name in ("ada", "bob", "eve")}
    with (
        serving(config=config, env=tokens(**names)) as server,
        connect(server.url, token=names[actor]) as graph,
    ):
        yield cast("Omnigraph", graph)


def denied(call: Callable[[], object]) -> str:
    with pytest.raises(PolicyDenied) as refused:
        call()
    told = facts(refused.value)
    assert (told["kind"], told["code"], told["retryable"]) == ("forbidden", "policy.denied", False)
    assert told["details"] == {
        "actor": refused.value.actor,
        "action": refused.value.action,
        "branch": refused.value.branch,
        "target_branch": refused.value.target_branch,
        "rule": None,
    }
    return refused.value.message


def test_a_team_and_its_leads(place: Place, tmp_path: Path) -> None:
    with judged(place, "bob", tmp_path) as bob:
        assert amounts(bob) == amounts(place.at_hand)
        assert denied(lambda: put(bob, bin_("b3"))) == (
            "policy denied action 'change' on branch 'main' for actor 'bob'"
        )
        assert bob.branch_create("fix").actor == "bob"
        put(bob, bin_("b3"), branch="fix")
        assert denied(lambda: bob.branch_merge("fix")) == (
            "policy denied action 'branch_merge' on branch 'fix' targeting branch 'main' "
            "for actor 'bob'"
        )
        grown = SCHEMA + "node Note { text: String @key }\n"
        denied(lambda: bob.schema_apply(grown))
        denied(lambda: bob.optimize())
        denied(lambda: bob.load(lines(bin_("b4")), progress=lambda _: None))  # as a job
        with pytest.raises(BranchNotFound):
            bob.query("none", AMOUNTS)  # who may read everything is told what is not there
    with judged(place, "ada", tmp_path) as ada:
        merged = ada.branch_merge("fix")
        assert merged.commit is not None
        assert merged.commit.actor_id == "ada"


def test_strangers_learn_nothing(place: Place, tmp_path: Path) -> None:
    place.at_hand.tag_create("v1")
    with judged(place, "eve", tmp_path) as eve:
        for branch in ("main", "none"):
            assert denied(lambda name=branch: eve.query(name, AMOUNTS)) == (  # type: ignore[misc]
                f"policy denied action 'read' on branch '{branch}' for unknown actor 'eve'"
            )
        for target in (ReadTarget(tag="v1"), ReadTarget(tag="none")):
            denied(lambda place=target: eve.snapshot_of(place))  # type: ignore[misc]
        denied(lambda: eve.branch_list())
        denied(lambda: eve.get_run("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
