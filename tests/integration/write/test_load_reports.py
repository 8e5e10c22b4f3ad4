"""Many mistakes in one load: all of them are reported, each once and at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    DataError,
)
from omnigraph_core.violations import MAX_LISTED, Rule
from tests.support import bad_loads
from tests.support.loading import (
    bin_,
    bin_id,
    edge,
    facts,
    holds,
    needs,
    note,
    part,
    places,
    refused,
    small_graph,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """One graph for every refused write: each of them leaves it as it was."""
    return small_graph(tmp_path_factory.mktemp("errors"))


SOUTH = bin_id("south")


def test_a_record_that_cannot_be_read_is_checked_as_far_as_it_can(graph: Omnigraph) -> None:
    found = refused(
        graph,
        {"type": "Part", "data": {"sku": "p", "stock": 500, "code": "x", "shade": "red"}},
        holds("north", "b", grade="bad", count="many"),
    )
    assert places(found) == [
        ("unknown_field", 1),
        ("range", 1),
        ("check", 1),
        ("value", 2),
        ("enum", 2),
    ], "that the first has no name is not said: it may be what was meant by `shade`"


def test_an_edge_of_a_record_that_cannot_be_read_is_no_second_mistake(graph: Omnigraph) -> None:
    found = refused(
        graph,
        part("p", stock="many"),
        bin_("east", row="one"),
        holds("north", "p"),
        holds("east", "nowhere"),
        note("m", rank=None),
        edge("Needs", "m", "p"),
    )
    assert places(found) == [("value", 1), ("value", 2), ("endpoint", 4), ("endpoint", 4)]


def test_five_mistakes_are_five_violations(graph: Omnigraph) -> None:
    problem = refused(
        graph,
        "// a comment",
        part("p1"),
        part("p2", stock=500),
        "",
        holds("south", "nowhere"),
        '{"type": "Part", "data": {"sku": "p3"',
        part("p4", serial="S1"),
        holds("south", "p2"),
        note(rank="high"),
        note(),
    )
    assert type(problem) is DataError
    assert places(problem) == [
        ("range", 3), ("endpoint", 5), ("json", 6), ("unique", 7), ("value", 9),
    ]  # fmt: skip
    assert problem.counts == dict.fromkeys(
        (Rule.RANGE, Rule.ENDPOINT, Rule.JSON, Rule.UNIQUE, Rule.VALUE), 1
    )
    assert problem.message.count("\n") == 4
    assert problem.message.startswith("line 3: @range violation on Part.stock")


def test_ten_mistakes_are_ten_violations(graph: Omnigraph) -> None:
    problem = refused(
        graph,
        "{",
        {"type": "Widget"},
        {"edge": "Holds", "from": SOUTH},
        {"nothing": 1},
        part("p1", shape=[1]),
        part("p2", id="p3"),
        {"type": "Part", "data": {"name": "no key"}},
        part("p4", kind="screw", code="lower"),
        part("p5"),
        part("p5"),
        holds("south", "p5", "e1"),
    )
    assert places(problem) == [
        ("json", 1), ("unknown_type", 2), ("record", 3), ("record", 4), ("value", 5),
        ("id_mismatch", 6), ("required", 7), ("enum", 8), ("check", 8), ("key", 10),
    ]  # fmt: skip


def test_one_record_can_be_wrong_in_several_ways(graph: Omnigraph) -> None:
    problem = refused(graph, part("z", stock=101, code="x", kind="y", serial="S1"))
    assert {rule for rule, _ in places(problem)} == {"range", "check", "enum", "unique"}
    assert {violation.id for violation in problem.violations} == {"z"}


def test_an_edge_of_a_wrong_node_is_no_second_mistake(graph: Omnigraph) -> None:
    problem = refused(graph, part("z", stock=101), holds("south", "z"))
    assert places(problem) == [("range", 1)]


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_list_is_bounded_and_the_counts_are_exact(graph: Omnigraph, dry_run: bool) -> None:
    wrong = [part(f"p{number}", stock=101) for number in range(250)]
    missing = [needs(f"m{number}", "a") for number in range(30)]
    problem = refused(graph, *wrong, *missing, dry_run=dry_run)
    assert problem.counts == {Rule.RANGE: 250, Rule.ENDPOINT: 30}
    assert len(problem.violations) == MAX_LISTED
    assert places(problem) == [("range", line) for line in range(1, MAX_LISTED + 1)]
    assert problem.message.endswith(f"and {280 - MAX_LISTED} more")


@pytest.mark.parametrize("count", [MAX_LISTED, MAX_LISTED + 1])
def test_the_bound_itself(graph: Omnigraph, count: int) -> None:
    problem = refused(graph, *(["{"] * count))
    assert problem.counts == {Rule.JSON: count}
    assert len(problem.violations) == MAX_LISTED
    assert problem.message.endswith("and 1 more") is (count > MAX_LISTED)


def test_details_are_ready_for_json(graph: Omnigraph) -> None:
    problem = refused(graph, part("z", stock=101))
    assert problem.details() == {
        "violations": [
            {
                "rule": "range",
                "message": "@range violation on Part.stock: 101 is not in 0..100",
                "type": "Part",
                "property": "stock",
                "value": 101,
                "id": "z",
                "line": 1,
            }
        ],
        "counts": {"range": 1},
    }


def test_a_replaced_record_is_checked_all_the_same(graph: Omnigraph) -> None:
    problem = refused(graph, note("z", rank=99), note("z", rank=2))
    assert places(problem) == [("range", 1)]


def test_rows_before_a_damaged_row_group_are_checked(graph: Omnigraph, tmp_path: Path) -> None:
    """Small row groups are read together, which does not show in the report."""
    case = bad_loads.CASES["a row group that is damaged among others"]
    with pytest.raises(DataError) as caught:
        graph.load(bad_loads.write_files(case, tmp_path))
    found = {facts(violation) for violation in caught.value.violations}
    assert found == {("record", None), ("unique", 1), ("range", 2), ("check", 2)}
