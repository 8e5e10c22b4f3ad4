"""The three modes: what each does to rows that are there, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConstraintViolation,
    DuplicateKey,
    EndpointNotFound,
    VersionConflict,
)
from omnigraph_core.write.progress import Progress, Step
from tests.support.loading import (
    bin_,
    bin_id,
    edge,
    exported,
    holds,
    ids,
    lines,
    needs,
    new_graph,
    note,
    part,
    places,
    refused,
    rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# Merge


def test_merge_replaces_and_adds(graph: Omnigraph) -> None:
    result = graph.load(lines(part("a", stock=7), part("new")))
    assert result.nodes_loaded == 2
    found = rows(graph, "Part")
    assert sorted(found) == ["a", "b", "c", "new"]
    assert found["a"] == {"sku": "a", "name": "part a", "stock": 7, "colour": "grey"}


def test_merge_replaces_whole_rows(graph: Omnigraph) -> None:
    graph.load(lines(part("a", tags=["x"], drawing="base64:AQI=", shape=[1, 2, 3])))
    graph.load(lines(part("a")))
    assert rows(graph, "Part")["a"] == {"sku": "a", "name": "part a", "colour": "grey"}


def test_merge_replaces_edges_by_id(graph: Omnigraph) -> None:
    graph.load(lines(holds("south", "b", "h1", count=4)))
    assert rows(graph, "Holds") == {"h1": {"from": bin_id("south"), "to": "b", "count": 4}}


def test_merge_replaces_rows_of_a_composite_key(graph: Omnigraph) -> None:
    graph.load(lines(bin_("north"), bin_("north", 2)))
    assert ids(graph, "Bin") == [bin_id("north"), bin_id("north", 2), bin_id("south")]


@pytest.mark.parametrize("count", [2, 3])
def test_of_a_repeated_id_the_last_record_counts(graph: Omnigraph, count: int) -> None:
    records = [note("z", rank=number) for number in range(count)]
    result = graph.load(lines(note("y"), *records, note("x")))
    assert result.nodes_loaded == 3
    assert rows(graph, "Note")["z"] == {"rank": count - 1}


def test_of_a_repeated_edge_only_the_last_counts(graph: Omnigraph) -> None:
    """Not to the rules either: the first three would be too many for their bin, and not there."""
    graph.load(
        lines(
            holds("south", "a", "z"), holds("south", "b", "z"), holds("west", "c", "z"),
            holds("south", "c", "z"), holds("south", "a", "y"),
        )
    )  # fmt: skip
    assert rows(graph, "Holds")["z"]["to"] == "c"


def test_repeats_across_sources(graph: Omnigraph) -> None:
    graph.load([lines(note("z", rank=1)), lines(note("z", rank=2)), lines(note("y"))])
    assert rows(graph, "Note")["z"] == {"rank": 2}
    assert ids(graph, "Note") == ["n", "y", "z"]


def test_merging_twice_changes_nothing(graph: Omnigraph) -> None:
    data = lines(
        part("a", serial="S9", tags=["x", ""], drawing="base64:AQI="), part("d", shape=[1, 2, 3]),
        note("m", text="ü"), needs("m", "d", "w2"), holds("south", "d", "h2", grade="poor"),
    )  # fmt: skip
    graph.load(data)
    once, counts = exported(graph), graph.snapshot()
    graph.load(data)
    assert exported(graph) == once
    again = graph.snapshot()
    assert [again.table(key).row_count for key in again.tables] == [
        counts.table(key).row_count for key in counts.tables
    ]


def test_a_unique_value_may_move_between_rows_of_one_load(graph: Omnigraph) -> None:
    graph.load(lines(part("a", serial="S2"), part("b", serial="S1")))
    found = rows(graph, "Part")
    assert (found["a"]["serial"], found["b"]["serial"]) == ("S2", "S1")


def test_an_edge_that_moves_frees_its_place(graph: Omnigraph) -> None:
    graph.load(lines(holds("north", "b", "h2")))
    graph.load(lines(holds("south", "b", "h2"), holds("north", "c", "h3")))
    assert rows(graph, "Holds")["h2"]["from"] == bin_id("south")
    assert ids(graph, "Holds") == ["h1", "h2", "h3"]


def test_nulls_are_never_duplicates(graph: Omnigraph) -> None:
    graph.load(lines(part("x", maker="M"), part("y", maker="M"), part("z", model="X")))
    assert len(ids(graph, "Part")) == 6


# Append


def test_append_adds(graph: Omnigraph) -> None:
    graph.load(lines(part("d"), note(), holds("south", "d")), mode="append")
    assert ids(graph, "Part") == ["a", "b", "c", "d"]
    assert len(ids(graph, "Note")) == 2
    assert len(ids(graph, "Holds")) == 2


def test_append_replaces_nothing(graph: Omnigraph) -> None:
    problem = refused(
        graph, part("d"), part("a"), note("n"), bin_("north"), needs("n", "b", "w1"), mode="append"
    )
    assert type(problem) is DuplicateKey
    assert places(problem) == [("key", 2), ("key", 3), ("key", 4), ("key", 5)]
    assert all("already exists" in violation.message for violation in problem.violations)


def test_append_takes_an_id_once(graph: Omnigraph) -> None:
    problem = refused(graph, note("z"), note("y"), note("z"), note("z"), mode="append")
    assert places(problem) == [("key", 3), ("key", 4)]


def test_append_twice_is_refused(graph: Omnigraph) -> None:
    graph.load(lines(part("d")), mode="append")
    assert places(refused(graph, part("d"), mode="append")) == [("key", 1)]


# Overwrite


def test_overwrite_replaces_the_types_of_the_input_only(graph: Omnigraph) -> None:
    before = graph.snapshot()
    graph.load(lines(note("m"), part("a", stock=1), needs("m", "a", "w9")), mode="overwrite")
    assert ids(graph, "Note") == ["m"]
    assert rows(graph, "Part") == {
        "a": {"sku": "a", "name": "part a", "stock": 1, "colour": "grey"}
    }
    assert ids(graph, "Needs") == ["w9"]
    assert ids(graph, "Holds") == ["h1"], "it was not in the input, and its part is still there"
    after = graph.snapshot()
    for key in ("node:Bin", "edge:Holds"):
        assert after.table(key) == before.table(key)


def test_edges_that_stay_must_resolve(graph: Omnigraph) -> None:
    problem = refused(graph, part("b"), mode="overwrite")
    assert type(problem) is EndpointNotFound
    assert {(found.type_name, found.id) for found in problem.violations} == {
        ("Holds", "h1"), ("Needs", "w1"),
    }  # fmt: skip


def test_edges_that_go_need_not_resolve(graph: Omnigraph) -> None:
    graph.load(lines(part("b"), holds("north", "b", "h9"), needs("n", "b", "w9")), mode="overwrite")
    assert ids(graph, "Part") == ["b"]
    assert (ids(graph, "Holds"), ids(graph, "Needs")) == (["h9"], ["w9"])


def test_new_edges_resolve_in_what_is_there_after_an_overwrite(graph: Omnigraph) -> None:
    problem = refused(
        graph, part("b"), holds("north", "a", "h9"), needs("n", "b", "w9"), mode="overwrite"
    )
    assert places(problem) == [("endpoint", 2)]


def test_overwrite_of_edges_alone(graph: Omnigraph) -> None:
    graph.load(lines(holds("south", "c", "h9")), mode="overwrite")
    assert ids(graph, "Holds") == ["h9"]
    assert ids(graph, "Bin") == [bin_id("north"), bin_id("south")]


def test_committed_values_do_not_count_in_an_overwrite(graph: Omnigraph) -> None:
    graph.load(lines(part("z", serial="S1"), part("a")), mode="overwrite")
    assert rows(graph, "Part")["z"]["serial"] == "S1"


def test_a_source_may_not_fall_below_its_minimum_by_an_overwrite(graph: Omnigraph) -> None:
    problem = refused(graph, note("m"), note("n"), needs("m", "a", "w9"), mode="overwrite")
    (found,) = problem.violations
    assert "source 'n' has 0, allowed 1..2" in found.message


def test_overwrite_takes_an_id_once(graph: Omnigraph) -> None:
    problem = refused(graph, note("n"), note("n"), mode="overwrite")
    assert ("key", 2) in places(problem)


def test_overwriting_twice_is_the_same(graph: Omnigraph) -> None:
    data = exported(graph)
    for _ in range(2):
        graph.load(data, mode="overwrite")
        assert exported(graph) == data


# When others write meanwhile


def beside(graph: Omnigraph, write: Callable[[Omnigraph], object]) -> Callable[[Progress], None]:
    """Another process writes once, when rows of this load are on disk."""
    pending = [write]

    def listen(progress: Progress) -> None:
        if progress.step is Step.STAGED and pending:
            pending.pop()(Omnigraph.open(graph.uri))

    return listen


def test_an_overwrite_does_not_undo_what_it_has_not_seen(graph: Omnigraph) -> None:
    graph.snapshot()
    listen = beside(graph, lambda other: other.load(lines(note("m"))))
    with pytest.raises(VersionConflict) as caught:
        graph.load(lines(note("n", rank=5)), mode="overwrite", progress=listen)
    assert caught.value.table_key == "node:Note"
    assert (caught.value.expected, caught.value.actual) == (2, 3)
    assert rows(graph, "Note") == {"m": {}, "n": {"rank": 1}}


@pytest.mark.parametrize("mode", ["merge", "append"])
def test_other_modes_land_after_the_other_write(graph: Omnigraph, mode: str) -> None:
    listen = beside(graph, lambda other: other.load(lines(note("m"))))
    result = graph.load(lines(note("o")), mode=mode, progress=listen)
    assert ids(graph, "Note") == ["m", "n", "o"]
    assert result.commit is not None


def test_a_merge_replaces_what_came_meanwhile(graph: Omnigraph) -> None:
    listen = beside(graph, lambda other: other.load(lines(note("m", rank=1))))
    graph.load(lines(note("m", rank=2)), progress=listen)
    assert rows(graph, "Note")["m"] == {"rank": 2}


def test_an_append_sees_what_came_meanwhile(graph: Omnigraph) -> None:
    listen = beside(graph, lambda other: other.load(lines(note("m", rank=1))))
    with pytest.raises(DuplicateKey):
        graph.load(lines(note("m", rank=2)), mode="append", progress=listen)
    assert rows(graph, "Note")["m"] == {"rank": 1}


def test_an_edge_does_not_land_on_a_node_that_has_gone(graph: Omnigraph) -> None:
    listen = beside(graph, lambda other: other.mutate('query q() { delete Part where sku = "c" }'))
    with pytest.raises(EndpointNotFound):
        graph.load(lines(holds("south", "c")), progress=listen)
    assert ids(graph, "Part") == ["a", "b"]
    assert ids(graph, "Holds") == ["h1"]


def test_a_unique_value_is_not_taken_twice_by_two_writers(graph: Omnigraph) -> None:
    listen = beside(graph, lambda other: other.load(lines(part("x", serial="S7"))))
    with pytest.raises(ConstraintViolation, match=r"@unique violation on Part\.serial"):
        graph.load(lines(part("y", serial="S7")), progress=listen)
    assert ids(graph, "Part") == ["a", "b", "c", "x"]


def test_a_graph_without_rows_can_be_overwritten(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    graph.load(lines(part("a"), note("n"), edge("needs", "n", "a", "w")), mode="overwrite")
    assert ids(graph, "Needs") == ["w"]
