"""Every edit of one branch against every edit of another, on four persons and one edge.

An edit is a mutation and what it means for the graph; what a pair gives is both of them, unless the
pair is among those that are listed with their conflicts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.merge.model import MergeOutcome
from tests.support.cases import each
from tests.support.examples import LONG
from tests.support.merge_worlds import graph_of, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.merge.model import MergeResult
    from tests.support.merge_oracle import Graph, Row

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    city: String?
}
edge Knows: Person -> Person {
    since: I32?
}
"""
PERSON, KNOWS = "node:Person", "edge:Knows"


def person(name: str, age: int | None = None, city: str | None = None) -> Row:
    return {"name": json.dumps(name), "age": json.dumps(age), "city": json.dumps(city)}


def knows(src: str, dst: str, since: int | None = None) -> Row:
    return {"src": json.dumps(src), "dst": json.dumps(dst), "since": json.dumps(since)}


BASE: Graph = {
    PERSON: {name: person(name, 30) for name in ("Alice", "Bob", "Carol", "Dan")},
    KNOWS: {"k1": knows("Bob", "Carol")},
}
Effect = dict[tuple[str, str], "Row | None"]
"""What there is afterwards, by table key and id; None for what is gone."""


@dataclass(frozen=True)
class Edit:
    run: Callable[[Omnigraph, str], object]
    effect: Effect


def mutate(*statements: str) -> Callable[[Omnigraph, str], object]:
    """One commit per statement."""

    def run(og: Omnigraph, branch: str) -> None:
        for statement in statements:
            og.mutate(f"query q() {{ {statement} }}", branch=branch, actor=f"act-{branch}")

    return run


def load_edge(id: str, src: str, dst: str, since: int | None = None) -> Edit:
    record = {"edge": "Knows", "from": src, "to": dst, "data": {"id": id, "since": since}}
    run = partial(load, records=[record])
    return Edit(lambda og, branch: run(og, branch), {(KNOWS, id): knows(src, dst, since)})


EDITS: dict[str, Edit] = {
    "noop": Edit(lambda _og, _branch: None, {}),
    "addNode": Edit(
        mutate('insert Person { name: "Erin", age: 50 }'), {(PERSON, "Erin"): person("Erin", 50)}
    ),
    "addNodeOther": Edit(
        mutate('insert Person { name: "Erin", age: 51 }'), {(PERSON, "Erin"): person("Erin", 51)}
    ),
    "removeNode": Edit(mutate('delete Person where name = "Dan"'), {(PERSON, "Dan"): None}),
    "removeLinked": Edit(
        mutate('delete Person where name = "Bob"'), {(PERSON, "Bob"): None, (KNOWS, "k1"): None}
    ),
    "setProperty": Edit(
        mutate('update Person set { age: 41 } where name = "Dan"'),
        {(PERSON, "Dan"): person("Dan", 41)},
    ),
    "setPropertyOther": Edit(
        mutate('update Person set { age: 42 } where name = "Dan"'),
        {(PERSON, "Dan"): person("Dan", 42)},
    ),
    "setElsewhere": Edit(
        mutate('update Person set { city: "Oslo" } where name = "Bob"'),
        {(PERSON, "Bob"): person("Bob", 30, "Oslo")},
    ),
    "addEdge": load_edge("k2", "Dan", "Alice"),
    "addEdgeOther": load_edge("k2", "Dan", "Alice", 2020),
    "addParallel": load_edge("k3", "Dan", "Alice"),
    "addEdgeAtLinked": load_edge("k4", "Alice", "Bob"),
    "removeEdge": Edit(mutate('delete Knows where from = "Bob"'), {(KNOWS, "k1"): None}),
    "setEdge": load_edge("k1", "Bob", "Carol", 2000),
    "moveEdge": load_edge("k1", "Bob", "Dan"),
    "netZero": Edit(
        mutate('insert Person { name: "Zed" }', 'delete Person where name = "Zed"'), {}
    ),
    "netZeroEdge": Edit(
        mutate(
            'insert Knows { from: "Carol", to: "Alice" }', 'delete Knows where from = "Carol"'
        ),
        {},
    ),
    "thereAndBack": Edit(
        mutate(
            'update Person set { age: 1 } where name = "Dan"',
            'update Person set { age: 30 } where name = "Dan"',
        ),
        {},
    ),
}  # fmt: skip
Conflict = tuple[str, str, str]
CONFLICTS: dict[frozenset[str], set[Conflict]] = {
    frozenset(pair): set(found)
    for pair, found in (
        (("addNode", "addNodeOther"), [(PERSON, "Erin", "divergent_insert")]),
        (("removeNode", "setProperty"), [(PERSON, "Dan", "delete_vs_update")]),
        (("removeNode", "setPropertyOther"), [(PERSON, "Dan", "delete_vs_update")]),
        (("removeNode", "addEdge"), [(KNOWS, "k2", "orphan_edge")]),
        (("removeNode", "addEdgeOther"), [(KNOWS, "k2", "orphan_edge")]),
        (("removeNode", "addParallel"), [(KNOWS, "k3", "orphan_edge")]),
        (("removeNode", "moveEdge"), [(KNOWS, "k1", "orphan_edge")]),
        (("removeLinked", "setElsewhere"), [(PERSON, "Bob", "delete_vs_update")]),
        (("removeLinked", "addEdgeAtLinked"), [(KNOWS, "k4", "orphan_edge")]),
        (("removeLinked", "setEdge"), [(KNOWS, "k1", "delete_vs_update")]),
        (("removeLinked", "moveEdge"), [(KNOWS, "k1", "delete_vs_update")]),
        (("setProperty", "setPropertyOther"), [(PERSON, "Dan", "divergent_update")]),
        (("addEdge", "addEdgeOther"), [(KNOWS, "k2", "divergent_insert")]),
        (("removeEdge", "setEdge"), [(KNOWS, "k1", "delete_vs_update")]),
        (("removeEdge", "moveEdge"), [(KNOWS, "k1", "delete_vs_update")]),
        (("setEdge", "moveEdge"), [(KNOWS, "k1", "divergent_update")]),
    )
}
"""Pairs that exclude each other, whichever of them is the source."""


@pytest.fixture(scope="module")
def og(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """The base on main, and two branches per edit with the edit done on each."""
    og = Omnigraph.init(str(tmp_path_factory.mktemp("table") / "graph"), SCHEMA)
    people = [{"type": "Person", "data": {"name": n, "age": 30}} for n in BASE[PERSON]]
    load(
        og, "main", [*people, {"edge": "Knows", "from": "Bob", "to": "Carol", "data": {"id": "k1"}}]
    )
    for name, edit in EDITS.items():
        for side in ("source", "target"):
            og.branch_create(f"{side}-{name}")
            edit.run(og, f"{side}-{name}")
            assert graph_of(og, f"{side}-{name}") == after(name)
    return og


def after(*names: str) -> Graph:
    """The base with the effects of these edits."""
    graph = {key: dict(rows) for key, rows in BASE.items()}
    for name in names:
        for (key, id), row in EDITS[name].effect.items():
            graph[key].pop(id, None)
            if row is not None:
                graph[key][id] = row
    return {key: rows for key, rows in graph.items() if rows}


def is_usual(source: str, target: str) -> bool:
    """Pairs that go together are merged one way, so that every edit is a source and a target."""
    one, other = list(EDITS).index(source), list(EDITS).index(target)
    is_first = (one < other) == ((one + other) % 2 == 0)
    is_special = source == target or "noop" in (source, target)
    return is_first or is_special or frozenset((source, target)) in CONFLICTS


CELLS = [(one, other) for one in EDITS for other in EDITS if LONG or is_usual(one, other)]


@each(("source", "target"), CELLS)
def test_cell(og: Omnigraph, source: str, target: str) -> None:
    branch = f"cell-{source}-{target}"
    og.branch_create(branch, source=f"target-{target}")
    head = og.head_commit_id_for_branch(branch)
    conflicts = CONFLICTS.get(frozenset((source, target))) if source != target else None
    if conflicts:
        assert refused(og, source, branch) == conflicts
        assert og.head_commit_id_for_branch(branch) == head
        assert graph_of(og, branch) == after(target)
        return
    result = og.branch_merge(f"source-{source}", into=branch, actor="act-merge")
    assert result.outcome is outcome(source, target)
    assert result.conflicts == ()
    assert graph_of(og, branch) == after(target, source)
    check_commit(og, result, branch, head)


def refused(og: Omnigraph, source: str, branch: str) -> set[Conflict]:
    """The conflicts of a merge; a dry run lists the same ones."""
    with pytest.raises(MergeConflicts) as caught:
        og.branch_merge(f"source-{source}", into=branch, actor="act-merge")
    listed = [dict(item) for item in caught.value.conflicts]
    tried = og.branch_merge(f"source-{source}", into=branch, dry_run=True)
    assert [item.to_json() for item in tried.conflicts] == listed
    found = [(str(item["table_key"]), str(item["row_id"]), str(item["kind"])) for item in listed]
    assert len(found) == len(set(found))
    assert found == sorted(found)
    assert all(item["message"] for item in listed)
    return set(found)


def outcome(source: str, target: str) -> MergeOutcome:
    if source == "noop":
        return MergeOutcome.ALREADY_UP_TO_DATE
    return MergeOutcome.FAST_FORWARD if target == "noop" else MergeOutcome.MERGED


def check_commit(og: Omnigraph, result: MergeResult, branch: str, head: str) -> None:
    commit = og.snapshot(branch).commit
    if result.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
        assert result.commit is None
        assert commit.graph_commit_id == head
        return
    assert result.commit == commit
    assert commit.parents == (head, og.head_commit_id_for_branch(result.source))
    assert commit.actor_id == "act-merge"
    again = og.branch_merge(result.source, into=branch)
    assert again.outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_edges_without_an_id_of_their_own_stay_apart(og: Omnigraph) -> None:
    statement = 'query q() { insert Knows { from: "Dan", to: "Alice" } }'
    for branch in ("parallel-a", "parallel-b"):
        og.branch_create(branch)
        og.mutate(statement, branch=branch)
    result = og.branch_merge("parallel-a", into="parallel-b")
    assert result.outcome is MergeOutcome.MERGED
    edges = list(graph_of(og, "parallel-b")[KNOWS].values())
    assert edges.count(knows("Dan", "Alice")) == 2


def test_conflicts_of_all_tables_are_listed_together(og: Omnigraph) -> None:
    edits = {
        "all-a": ("addNode", "setProperty", "setElsewhere", "addEdge", "setEdge"),
        "all-b": ("addNodeOther", "removeNode", "addEdgeOther", "removeEdge"),
    }
    for branch, names in edits.items():
        og.branch_create(branch)
        # Deleting Dan takes edges along, so an edge of his cannot be there when it is done.
        for name in sorted(names, key=lambda name: "Node" not in name):
            if name != "addEdgeOther":
                EDITS[name].run(og, branch)
    load_edge("k2", "Carol", "Alice", 7).run(og, "all-b")
    with pytest.raises(MergeConflicts) as caught:
        og.branch_merge("all-a", into="all-b")
    found = [(c["table_key"], c["row_id"], c["kind"]) for c in caught.value.conflicts]
    assert found == [
        (KNOWS, "k1", "delete_vs_update"),
        (KNOWS, "k2", "divergent_insert"),
        (PERSON, "Dan", "delete_vs_update"),
        (PERSON, "Erin", "divergent_insert"),
    ]
