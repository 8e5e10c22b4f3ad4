"""Mutations: statements with one commit or none, keys, expected heads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.errors import (
    ConfigError,
    ConflictError,
    ConstraintViolation,
    EndpointNotFound,
    ParameterError,
    PreconditionFailed,
    QueryTypeError,
)
from omnigraph_core.write.mutate import MutationResult
from tests.behaviour.stock import BOLT, amounts
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from tests.support.ways import Place

QUERIES = """
query add($sku: String, $stock: I64?) { insert Part { sku: $sku, stock: $stock } }
query set($sku: String, $stock: I64?) { update Part set { stock: $stock } where sku = $sku }
query drop($sku: String) { delete Part where sku = $sku }
query move($sku: String) {
  insert Bin { code: "new" }
  insert Holds { from: "new", to: $sku, count: 1 }
  update Part set { stock: 1 } where sku = $sku
}
query noted($sku: String, $note: String) { update Part set { note: $note } where sku = $sku }
query look() { match { $p: Part } return { $p.sku } }
"""


def check(place: Place, done: MutationResult, name: str, nodes: int, edges: int) -> None:
    """What a mutation says, with the commit that is the head now."""
    assert done.commit is not None
    assert told(done.commit) == told(place.at_hand.snapshot(done.branch).commit)
    assert done.commit.operation == "mutate"
    assert replace(done, commit=None) == MutationResult(done.branch, name, nodes, edges, None)


def test_statements(place: Place) -> None:
    graph = place.graph
    done = graph.mutate(QUERIES, {"sku": "new", "stock": 2**62}, name="add")
    check(place, done, "add", 1, 0)
    check(place, graph.mutate(QUERIES, {"sku": "nut", "stock": None}, name="set"), "set", 1, 0)
    check(place, graph.mutate(QUERIES, {"sku": "bare"}, name="move"), "move", 2, 1)
    check(place, graph.mutate(QUERIES, {"sku": "bolt"}, name="drop"), "drop", 1, 1)
    assert amounts(graph) == {"bare": 1, "new": 2**62, "nut": None}


@NOT_ON_S3
def test_nothing_to_change_makes_no_commit(place: Place) -> None:
    head = place.graph.head_commit_id_for_branch()
    done = place.both(lambda graph: graph.mutate(QUERIES, {"sku": "none"}, name="drop"))
    assert done == MutationResult("main", "drop", 0, 0, None)
    assert (done.commit_id, place.at_hand.head_commit_id_for_branch()) == (None, head)


@NOT_ON_S3
def test_on_a_branch(place: Place) -> None:
    place.graph.branch_create("side")
    given = {"sku": "new", "stock": 1}
    done = place.graph.mutate(QUERIES, given, name="add", branch="side")
    check(place, done, "add", 1, 0)
    assert done.branch == "side"
    assert done.commit is not None
    assert done.commit.manifest_branch == "side"
    assert ("new" in amounts(place.graph), "new" in amounts(place.graph, "side")) == (False, True)


@NOT_ON_S3
def test_vectors_follow_their_texts(place: Place) -> None:
    graph = place.graph
    given = {"sku": "nut", "note": "another text"}
    graph.mutate(QUERIES, given, name="noted", embed="off")
    (status,) = place.both(lambda graph: graph.embedding_status())
    assert (status.ready, status.pending) == (1, 1)
    graph.mutate(QUERIES, given | {"note": "a third"}, name="noted")
    (status,) = place.both(lambda graph: graph.embedding_status())
    assert (status.ready, status.pending, status.stale) == (2, 0, 0)


def test_a_repeat_under_a_key_changes_nothing(place: Place) -> None:
    given = {"sku": "nut", "stock": 5}
    first, again = (
        place.graph.mutate(QUERIES, given, name="set", idempotency_key="k") for _ in range(2)
    )
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert told(replace(again, is_repeat=False)) == told(first)
    assert place.at_hand.head_commit_id_for_branch() == first.commit_id
    at_hand = place.at_hand.mutate(QUERIES, given, name="set", idempotency_key="k")
    assert at_hand.is_repeat, "the key is one of the graph, however it is reached"
    problem = place.raised(
        lambda graph: graph.mutate(QUERIES, {"sku": "nut"}, name="set", idempotency_key="k")
    )
    assert isinstance(problem, ConflictError)


@NOT_ON_S3
def test_a_mutation_that_expects_a_head(place: Place) -> None:
    head = place.graph.head_commit_id_for_branch()
    given = {"sku": "new"}
    done = place.graph.mutate(QUERIES, given, name="add", if_commit=head)
    problem = place.raised(
        lambda graph: graph.mutate(QUERIES, {"sku": "more"}, name="add", if_commit=head)
    )
    assert isinstance(problem, PreconditionFailed)
    assert (problem.expected, problem.actual) == (head, done.commit_id)
    assert "more" not in amounts(place.graph)


@NOT_ON_S3
def test_what_is_refused_changes_nothing(place: Place) -> None:
    head = place.graph.head_commit_id_for_branch()

    def refused(name: str, params: dict[str, object] | None, kind: type) -> None:
        problem = place.raised(lambda graph: graph.mutate(QUERIES, params, name=name))
        assert isinstance(problem, kind)

    refused("look", None, ConfigError)
    refused("add", {"sku": "x", "stock": -1}, ConstraintViolation)
    refused("move", {"sku": "none"}, EndpointNotFound)
    refused("add", {"sku": 5, "stok": 1}, ParameterError)
    wrong = "query q() { insert Prt { a: 1 }  insert Part { sko: 2 } }"
    problem = place.raised(lambda graph: graph.mutate(wrong))
    assert isinstance(problem, QueryTypeError)
    assert len(problem.diagnostics) > 1
    place.raised(lambda graph: graph.mutate(QUERIES))
    place.raised(lambda graph: graph.mutate(QUERIES, name="add", branch="none"))
    place.raised(lambda graph: graph.mutate(QUERIES, {"sku": "x"}, name="add", embed="later"))
    assert place.at_hand.head_commit_id_for_branch() == head
    assert amounts(place.graph)["bolt"] == BOLT["stock"]
