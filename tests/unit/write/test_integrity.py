"""Set rules: each rule against the rows of the write and the committed ones, and its lookups."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.violations import Rule
from omnigraph_core.write.integrity import key_columns
from tests.support.checked import CATALOG, NODES, Checked, edge, node, of, part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.committed import Row


def test_key_columns() -> None:
    assert key_columns(CATALOG.nodes["Part"]) == ("id", "serial", "maker", "size", "made")
    assert key_columns(CATALOG.edges["Fits"]) == ("id", "src", "dst", "grade")
    assert key_columns(CATALOG.edges["Holds"]) == ("id", "src", "dst")


def test_nothing_is_wrong_with_nothing() -> None:
    checked = Checked([of("Part"), of("Fits"), of("Sits")])
    assert checked.is_clean
    assert checked.view.asked == []


class TestKeys:
    def test_a_key_given_twice(self) -> None:
        checked = Checked([of("Part", part("a"), part("b"), part("a"), part("a"))])
        assert checked.bad == {"Part": [2, 3]}
        assert checked.messages == [
            f"rows.jsonl:{line}: @unique violation on Part.code: key 'a' was given before, at "
            "rows.jsonl:1"
            for line in (3, 4)
        ]
        assert checked.violations.counts == {Rule.KEY: 2}

    def test_a_key_of_several_columns(self) -> None:
        checked = Checked([of("Screw", node('[3,"m"]'), node('[3,"m"]'))])
        assert "@unique violation on Screw.(length, thread): key '[3,\"m\"]'" in checked.messages[0]
        assert checked.one.property == "length, thread"

    def test_an_id_given_twice(self) -> None:
        checked = Checked([of("Bin", node("b1"), node("b1"))])
        assert "@unique violation on Bin.id: id 'b1' was given before" in checked.messages[0]

    def test_a_committed_key_is_replaced(self) -> None:
        checked = Checked([of("Part", part("p1"))], NODES)
        assert checked.is_clean
        assert checked.view.asked == []

    def test_a_strict_write_replaces_nothing(self) -> None:
        rows = [part("p1"), part("p3"), part("p3")]
        checked = Checked([of("Part", *rows, is_strict=True)], NODES)
        assert checked.bad == {"Part": [0, 2]}
        assert "key 'p1' already exists" in checked.messages[0]
        assert checked.view.asked == ["node:Part.id in 2"]

    def test_a_strict_overwrite_meets_nothing(self) -> None:
        checked = Checked([of("Part", part("p1"), is_strict=True, is_overwrite=True)], NODES)
        assert checked.is_clean

    def test_fresh_ids_are_not_looked_up(self) -> None:
        checked = Checked([of("Bin", node("new1"), node("new2"), is_strict=True)], NODES)
        assert checked.is_clean
        assert checked.view.asked == []


class TestUnique:
    def test_within_the_write(self) -> None:
        rows = [part("a", serial="s"), part("b"), part("c", serial="s"), part("d")]
        checked = Checked([of("Part", *rows)])
        assert checked.bad == {"Part": [2]}
        assert checked.one.to_json() == {
            "rule": "unique",
            "message": "@unique violation on Part.serial: 's' was given before, at rows.jsonl:1",
            "type": "Part",
            "property": "serial",
            "value": "s",
            "id": "c",
            "file": "rows.jsonl",
            "line": 3,
        }

    def test_tuples_are_compared_as_tuples(self) -> None:
        rows = [
            part("a", maker="m", size=1.0),
            part("b", maker="m", size=2.0),
            part("c", maker="n", size=1.0),
            part("d", maker="m", size=None),
            part("e", maker="m", size=None),
            part("f", maker="m", size=2.0),
        ]
        checked = Checked([of("Part", *rows, chunk_rows=2)])
        assert checked.bad == {"Part": [5]}
        assert checked.one.value == ["m", 2.0]
        assert checked.one.message.startswith("@unique violation on Part.(maker, size): ('m', 2.0)")

    def test_there_is_one_zero(self) -> None:
        zeros = [part("a", maker="m", size=0.0), part("b", maker="m", size=-0.0)]
        assert Checked([of("Part", *zeros)]).bad == {"Part": [1]}
        assert Checked([of("Part", zeros[1])], {"Part": [zeros[0]]}).bad == {"Part": [0]}

    def test_what_is_not_a_number_equals_nothing(self) -> None:
        rows = [part(code, maker="m", size=float("nan")) for code in "ab"]
        assert Checked([of("Part", *rows)]).is_clean

    def test_against_a_committed_row(self) -> None:
        checked = Checked([of("Part", part("b", serial="s"))], {"Part": [part("a", serial="s")]})
        assert checked.bad == {"Part": [0]}
        assert checked.one.message == "@unique violation on Part.serial: 's' is held by 'a'"
        assert checked.view.asked == ["node:Part.serial in 1"]

    def test_a_row_may_keep_its_own(self) -> None:
        held = {"Part": [part("a", serial="s", maker="m", size=1.0)]}
        assert Checked([of("Part", held["Part"][0])], held).is_clean

    def test_a_value_may_move(self) -> None:
        held = {"Part": [part("a", serial="s"), part("b", serial="t")]}
        swapped = of("Part", part("a", serial="t"), part("b", serial="s"))
        assert Checked([swapped], held).is_clean
        freed = of("Part", part("c", serial="s"), deleted=["a"])
        assert Checked([freed], held).is_clean
        replaced = of("Part", part("c", serial="s"), is_overwrite=True)
        assert Checked([replaced], held).is_clean

    def test_a_committed_holder_goes_before_all_rows(self) -> None:
        rows = [part("b", serial="s"), part("c", serial="s")]
        checked = Checked([of("Part", *rows)], {"Part": [part("a", serial="s")]})
        assert checked.bad == {"Part": [0, 1]}
        assert [v.message.split("'s' ")[1] for v in checked.violations.listed] == [
            "is held by 'a'",
            "is held by 'a'",
        ]

    def test_a_repeated_key_is_no_other_holder(self) -> None:
        rows = [part("a", serial="s"), part("a", serial="s")]
        assert Checked([of("Part", *rows)]).violations.counts == {Rule.KEY: 1}

    def test_a_tuple_is_looked_up_by_its_most_selective_column(self) -> None:
        held = {"Part": NODES["Part"], "Fits": [edge("f", "p1", "p2", grade=2)]}
        rows = [edge(f"new{n}", "p1", "p2", grade=n) for n in (1, 2, 3)]
        checked = Checked([of("Fits", *rows)], held)
        assert checked.bad == {"Fits": [1]}
        assert checked.one.message == (
            "@unique violation on Fits.(src, dst, grade): ('p1', 'p2', 2) is held by 'f'"
        )
        assert "edge:Fits.grade in 3" in checked.view.asked

    def test_moments_are_shown_whole(self) -> None:
        moment = 1_700_000_000_123
        rows = [part("a", made=moment), part("b", made=moment)]
        (violation,) = Checked([of("Part", *rows)]).violations.listed
        shown = dt.datetime.fromtimestamp(moment // 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
        assert violation.value == f"{shown}.123Z"


class TestEndpoints:
    def test_ends_are_there_or_come_along(self) -> None:
        rows = [edge("new1", "p1", "p2"), edge("new2", "p3", "p1")]
        checked = Checked([of("Part", part("p3")), of("Fits", *rows)], NODES)
        assert checked.is_clean
        assert checked.view.asked == ["node:Part.id in 2"]

    def test_an_end_is_missing(self) -> None:
        rows = [edge("f1", "p1", "x"), edge("new2", "y", "p1"), edge("new3", "p1", "p2")]
        checked = Checked([of("Fits", *rows)], NODES)
        assert checked.bad == {"Fits": [0, 1]}
        assert checked.messages == [
            "rows.jsonl:1: dst 'x' not found in Part (edge Fits 'f1')",
            "rows.jsonl:2: src 'y' not found in Part (edge Fits)",
        ]
        first = checked.violations.listed[0]
        assert (first.rule, first.type_name, first.property, first.value, first.id) == (
            Rule.ENDPOINT,
            "Fits",
            "dst",
            "x",
            "f1",
        )

    def test_an_end_of_another_type_is_not_there(self) -> None:
        assert Checked([of("Holds", edge("new1", "b1", "b2"))], NODES).bad == {"Holds": [0]}

    def test_a_null_end_is_reported_elsewhere(self) -> None:
        rows = [edge("new1", None, "p1"), edge("new2", "b1", None)]
        assert Checked([of("Holds", *rows)], NODES).is_clean

    def test_a_deleted_node_is_no_end(self) -> None:
        deltas = [of("Part", deleted=["p2"]), of("Fits", edge("new1", "p1", "p2"))]
        checked = Checked(deltas, NODES)
        assert checked.bad == {"Fits": [0]}
        assert "node:Part.id in 1" in checked.view.asked

    def test_after_an_overwrite_only_new_nodes_are_ends(self) -> None:
        fits = of("Fits", edge("new1", "p3", "p1"))
        checked = Checked([of("Part", part("p3"), is_overwrite=True), fits], NODES)
        assert checked.violations.counts == {Rule.ENDPOINT: 1}
        assert not any(line.startswith("node:Part.id") for line in checked.view.asked)

    @pytest.mark.parametrize("is_overwrite", [False, True])
    def test_a_claimed_node_is_an_end(self, is_overwrite: bool) -> None:
        claiming = of("Part", part("p1"), claimed=["p8", "p9"], is_overwrite=is_overwrite)
        fits = of("Fits", edge("new1", "p1", "p9"), edge("new2", "p8", "p7"))
        checked = Checked([claiming, fits], NODES)
        assert checked.bad == {"Fits": [1]}
        assert checked.one.value == "p7"

    def test_all_edge_types_ask_together(self) -> None:
        deltas = [
            of("Fits", edge("new1", "p1", "p2", grade=1)),
            of("Needs", edge("new1", "p2", "b1")),
        ]
        checked = Checked(deltas, NODES)
        assert checked.is_clean
        assert sorted(line for line in checked.view.asked if line.startswith("node")) == [
            "node:Bin.id in 1",
            "node:Part.id in 2",
        ]


class TestOrphans:
    HELD: Mapping[str, list[Row]] = {
        **NODES,
        "Fits": [edge("f1", "p1", "p2"), edge("f2", "p2", "p2")],
        "Holds": [edge("h1", "b1", "p1")],
    }

    def test_a_deleted_node_is_needed(self) -> None:
        checked = Checked([of("Part", deleted=["p1"])], self.HELD)
        assert checked.bad == {}
        assert [(v.rule, v.type_name, v.property, v.id) for v in checked.violations.listed] == [
            (Rule.ORPHAN, "Fits", "src", "f1"),
            (Rule.ORPHAN, "Holds", "dst", "h1"),
        ]
        assert checked.messages[0] == (
            "src 'p1' not found in Part: edge Fits 'f1' stays and would lose it"
        )

    def test_edges_that_go_or_move_need_nothing(self) -> None:
        deltas = [
            of("Part", deleted=["p1"]),
            of("Fits", edge("f1", "p2", "p2")),
            of("Holds", deleted=["h1"]),
        ]
        assert Checked(deltas, self.HELD).is_clean

    def test_an_overwritten_edge_table_needs_nothing(self) -> None:
        deltas = [
            of("Part", deleted=["p1"]),
            of("Fits", is_overwrite=True),
            of("Holds", is_overwrite=True),
        ]
        assert Checked(deltas, self.HELD).is_clean

    @pytest.mark.parametrize("more", [0, 50])
    def test_an_overwrite_drops_what_it_does_not_name(self, more: int) -> None:
        held = {**self.HELD, "Part": NODES["Part"] + [part(f"q{n}") for n in range(more)]}
        checked = Checked([of("Part", part("p2"), is_overwrite=True)], held)
        assert [(v.type_name, v.property, v.value) for v in checked.violations.listed] == [
            ("Fits", "src", "p1"),
            ("Holds", "dst", "p1"),
        ]

    @pytest.mark.parametrize("more", [0, 50])
    def test_a_claimed_node_does_not_go(self, more: int) -> None:
        held = {**self.HELD, "Part": NODES["Part"] + [part(f"q{n}") for n in range(more)]}
        overwrite = of("Part", part("p2"), claimed=["p1"], is_overwrite=True)
        assert Checked([overwrite], held).is_clean

    def test_an_overwrite_with_few_nodes_and_many_edges_looks_at_the_nodes(self) -> None:
        fits = [edge(f"f{n}", "p1", "p2", grade=n) for n in range(9)]
        overwrite = of("Part", part("p1"), part("p2"), is_overwrite=True)
        checked = Checked([overwrite], {**NODES, "Fits": fits})
        assert checked.is_clean
        assert "node:Part.*" in checked.view.asked
        assert "edge:Fits.*" not in checked.view.asked

    def test_an_overwrite_without_edges_reads_nothing(self) -> None:
        checked = Checked([of("Part", is_overwrite=True)], NODES)
        assert checked.is_clean
        assert all(line.endswith(".count") for line in checked.view.asked)


class TestCardinality:
    HELD: Mapping[str, list[Row]] = {
        **NODES,
        "Holds": [edge("h1", "b1", "p1"), edge("h2", "b2", "p1")],
        "Needs": [edge("n1", "p1", "b1"), edge("n2", "p2", "b1"), edge("n3", "p2", "b2")],
        "Sits": [edge("s1", "p1", "b1")],
    }

    def test_one_too_many(self) -> None:
        rows = [edge("new1", "b1", "p1"), edge("new2", "b2", "p2"), edge("new3", "b1", "p2")]
        checked = Checked([of("Holds", *rows)], self.HELD)
        assert checked.bad == {"Holds": [2]}
        assert checked.messages == [
            "rows.jsonl:3: @card violation on edge Holds: source 'b1' has 3, allowed 0..2"
        ]
        assert "edge:Holds.src in 2" in checked.view.asked

    def test_a_replaced_edge_counts_once(self) -> None:
        rows = [edge("h1", "b1", "p2"), edge("new1", "b1", "p1")]
        assert Checked([of("Holds", *rows)], self.HELD).is_clean

    def test_a_repeated_edge_counts_once(self) -> None:
        rows = [edge("h3", "b1", "p1"), edge("h3", "b1", "p1")]
        assert Checked([of("Holds", *rows)], self.HELD).violations.counts == {Rule.KEY: 1}

    def test_a_deleted_edge_makes_room(self) -> None:
        rows = [edge("new1", "b1", "p1"), edge("new2", "b1", "p2")]
        assert Checked([of("Holds", *rows, deleted=["h1"])], self.HELD).is_clean
        assert Checked([of("Holds", *rows, is_overwrite=True)], self.HELD).is_clean

    def test_the_last_edge_is_deleted(self) -> None:
        checked = Checked([of("Needs", deleted=["n1", "n2"])], self.HELD)
        assert checked.bad == {}
        assert checked.messages == ["@card violation on edge Needs: source 'p1' has 0, allowed 1.."]

    def test_the_last_edge_moves_away(self) -> None:
        checked = Checked([of("Needs", edge("n1", "p2", "b1"))], self.HELD)
        assert [v.value for v in checked.violations.listed] == ["p1"]
        assert checked.bad == {}

    def test_the_last_edge_is_overwritten(self) -> None:
        checked = Checked([of("Needs", edge("new1", "p2", "b1"), is_overwrite=True)], self.HELD)
        assert [v.value for v in checked.violations.listed] == ["p1"]

    def test_a_source_that_goes_needs_no_edge(self) -> None:
        deltas = [
            of("Part", deleted=["p1"]),
            of("Needs", deleted=["n1"]),
            of("Holds", is_overwrite=True),
            of("Sits", deleted=["s1"]),
        ]
        assert Checked(deltas, self.HELD).is_clean
        overwrite = of("Part", part("p2"), is_overwrite=True)
        assert Checked([overwrite, *deltas[1:]], self.HELD).is_clean

    def test_a_claimed_source_is_counted(self) -> None:
        claiming = of("Bin", claimed=["b1"], is_overwrite=True)
        rows = [edge(f"new{n}", "b1", "p1") for n in range(3)]
        checked = Checked([claiming, of("Holds", *rows, is_overwrite=True)], NODES)
        assert checked.bad == {"Holds": [2]}
        assert checked.violations.counts == {Rule.CARDINALITY: 1}

    def test_a_missing_source_is_not_counted(self) -> None:
        rows = [edge("new1", "b9", "p1"), edge("new2", "b9", "p1"), edge("new3", "b9", "p1")]
        assert Checked([of("Holds", *rows)], self.HELD).violations.counts == {Rule.ENDPOINT: 3}

    def test_a_source_without_edges_is_not_looked_at(self) -> None:
        assert Checked([of("Part", part("p3"))], self.HELD).is_clean

    def test_enough_new_edges_need_no_lookup(self) -> None:
        checked = Checked([of("Needs", edge("new1", "p1", "b1"))], self.HELD)
        assert checked.is_clean
        assert not any(line.startswith("edge") for line in checked.view.asked)

    def test_exactly_one(self) -> None:
        checked = Checked([of("Sits", edge("new1", "p1", "b2"))], self.HELD)
        assert checked.bad == {"Sits": [0]}
        assert checked.one.message.endswith("source 'p1' has 2, allowed 1..1")
        assert Checked([of("Sits", edge("s1", "p1", "b2"))], self.HELD).is_clean

    def test_rows_beyond_the_limit_are_bad_in_their_order(self) -> None:
        rows = [edge(f"new{n}", source, "p1") for n, source in enumerate(["b1", "b2"] * 3)]
        checked = Checked([of("Holds", *rows, chunk_rows=2)], NODES)
        assert checked.bad == {"Holds": [4, 5]}
        assert [v.line for v in checked.violations.listed] == [5, 6]


def test_an_edge_type_without_limits_is_not_counted() -> None:
    checked = Checked([of("Fits", edge("new1", "p1", "p2"))], NODES)
    assert checked.is_clean
    assert checked.view.asked == ["node:Part.id in 2"]


def test_a_fresh_node_without_unique_groups_needs_no_lookup() -> None:
    checked = Checked([of("Bin", node("new1"))], NODES)
    assert checked.is_clean
    assert checked.view.asked == []


def test_more_problems_than_are_listed_are_counted() -> None:
    fits = [edge(f"new{n}", "x", "y", grade=n) for n in range(20)]
    parts = [part(f"q{n}", serial="s") for n in range(20)] + [part("q0")] * 20
    holds = [edge(f"new{n}", f"b{n // 3}", "q0") for n in range(60)]
    deltas = [
        of("Part", *parts),
        of("Fits", *fits),
        of("Bin", *(node(f"b{n}") for n in range(20))),
        of("Holds", *holds),
    ]
    checked = Checked(deltas, limit=5)
    assert len(checked.violations.listed) == 5
    assert checked.violations.counts == {
        Rule.KEY: 20,
        Rule.UNIQUE: 19,
        Rule.ENDPOINT: 40,
        Rule.CARDINALITY: 20,
    }
    assert len(checked.bad["Fits"]) == 20


def test_orphans_that_are_not_listed_are_counted() -> None:
    held = {**NODES, "Fits": [edge(f"f{n}", "p1", "p2", grade=n) for n in range(20)]}
    checked = Checked([of("Part", deleted=["p1"])], held, limit=5)
    assert checked.violations.counts == {Rule.ORPHAN: 20}
    assert len(checked.violations.listed) == 5
