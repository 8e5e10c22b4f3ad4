"""Rows that are refused for one reason are no reason to refuse others."""

from __future__ import annotations

from omnigraph_core.violations import Rule
from tests.support.checked import NODES, Checked, edge, node, of, part

LIMITED = {
    **NODES,
    "Holds": [edge("h1", "b1", "p1")],
    "Needs": [edge("n1", "p1", "b1"), edge("n2", "p2", "b1")],
    "Sits": [edge("s1", "p1", "b1"), edge("s2", "p2", "b1")],
}


class TestUnique:
    def test_an_edge_without_an_end_holds_nothing(self) -> None:
        rows = [edge("new1", "p1", "x", grade=1), edge("new2", "p1", "x", grade=1)]
        rows += [edge("new3", "p1", "p2", grade=1), edge("new4", "p1", "p2", grade=1)]
        checked = Checked([of("Fits", *rows)], NODES)
        assert checked.bad == {"Fits": [0, 1, 3]}
        assert checked.violations.counts == {Rule.ENDPOINT: 2, Rule.UNIQUE: 1}
        assert checked.messages[2].endswith("was given before, at rows.jsonl:3")

    def test_an_edge_without_an_end_is_looked_up_no_further(self) -> None:
        checked = Checked([of("Fits", edge("new1", "p1", "x", grade=1))], NODES)
        assert checked.view.asked == ["node:Part.id in 2"]

    def test_an_edge_that_exists_holds_nothing_new(self) -> None:
        held = {**NODES, "Fits": [edge("f1", "p1", "p2", grade=1)]}
        rows = [edge("f1", "p2", "p1", grade=2), edge("new1", "p2", "p1", grade=2)]
        rows += [edge("new2", "p1", "p2", grade=1)]
        checked = Checked([of("Fits", *rows, is_strict=True)], held)
        assert checked.bad == {"Fits": [0, 2]}
        assert checked.violations.counts == {Rule.KEY: 1, Rule.UNIQUE: 1}

    def test_what_a_row_does_not_get_is_free_for_the_next(self) -> None:
        rows = [
            part("a", serial="s"),
            part("b", serial="s", maker="m", size=1.0),
            part("c", serial="t", maker="m", size=1.0),
            part("d", serial="t"),
        ]
        checked = Checked([of("Part", *rows)])
        assert checked.bad == {"Part": [1, 3]}
        assert [v.property for v in checked.violations.listed] == ["serial", "serial"]

    def test_the_order_of_the_groups_does_not_matter(self) -> None:
        rows = [
            part("a", maker="m", size=1.0),
            part("b", maker="m", size=1.0, serial="s"),
            part("c", serial="s"),
        ]
        checked = Checked([of("Part", *rows)])
        assert checked.bad == {"Part": [1]}
        assert checked.one.property == "maker, size"

    def test_a_row_that_loses_to_a_committed_one_holds_nothing(self) -> None:
        held = {"Part": [part("z", serial="s")]}
        rows = [part("a", serial="s", maker="m", size=1.0), part("b", maker="m", size=1.0)]
        checked = Checked([of("Part", *rows)], held)
        assert checked.bad == {"Part": [0]}

    def test_a_row_is_reported_for_every_group_it_breaks(self) -> None:
        held = {"Part": [part("z", serial="s")]}
        rows = [part("a", maker="m", size=1.0), part("b", maker="m", size=1.0, serial="s")]
        checked = Checked([of("Part", *rows)], held)
        assert checked.bad == {"Part": [1]}
        assert {v.property for v in checked.violations.listed} == {"serial", "maker, size"}

    def test_the_row_that_would_be_replaced_holds_nothing_yet(self) -> None:
        """Whether it stays is known when its row is put right or left out."""
        held = {**NODES, "Fits": [edge("f1", "p1", "p2", grade=1)]}
        rows = [edge("f1", "p1", "x", grade=2), edge("new1", "p1", "p2", grade=1)]
        assert Checked([of("Fits", *rows)], held).bad == {"Fits": [0]}
        assert Checked([of("Fits", rows[1])], held).bad == {"Fits": [0]}


class TestMaximum:
    def test_an_edge_without_an_end_takes_no_place(self) -> None:
        rows = [edge("new1", "b1", "x"), edge("new2", "b1", "p1"), edge("new3", "b1", "p2")]
        checked = Checked([of("Holds", *rows)], NODES)
        assert checked.bad == {"Holds": [0]}
        assert checked.violations.counts == {Rule.ENDPOINT: 1}

    def test_those_that_are_too_many_all_the_same(self) -> None:
        rows = [edge("new1", "b1", "x")] + [edge(f"new{n}", "b1", "p1") for n in (2, 3, 4)]
        checked = Checked([of("Holds", *rows)], NODES)
        assert checked.bad == {"Holds": [0, 3]}
        assert checked.messages[1].endswith("source 'b1' has 3, allowed 0..2")

    def test_an_edge_that_exists_takes_its_place_once(self) -> None:
        rows = [edge("h1", "b1", "p2"), edge("new1", "b1", "p1"), edge("new2", "b1", "p2")]
        checked = Checked([of("Holds", *rows, is_strict=True)], LIMITED)
        assert checked.bad == {"Holds": [0, 2]}
        assert checked.violations.counts == {Rule.KEY: 1, Rule.CARDINALITY: 1}

    def test_a_single_bad_edge_is_not_counted(self) -> None:
        checked = Checked([of("Holds", edge("new1", "b1", "x"))], LIMITED)
        assert checked.bad == {"Holds": [0]}
        assert not any(line.startswith("edge") for line in checked.view.asked)


class TestMinimum:
    def test_nobody_is_short_of_an_edge_that_was_refused(self) -> None:
        for rows in ([edge("n1", "p1", "x")], [edge("n1", "p2", "x")], [edge("new1", "p1", "x")]):
            checked = Checked([of("Needs", *rows)], LIMITED)
            assert checked.bad == {"Needs": [0]}
            assert checked.violations.counts == {Rule.ENDPOINT: 1}

    def test_nobody_is_short_of_an_edge_that_was_refused_in_an_overwrite(self) -> None:
        rows = [edge("n1", "p1", "x")]
        checked = Checked([of("Needs", *rows, is_overwrite=True)], LIMITED)
        assert checked.bad == {"Needs": [0]}
        assert [(v.rule, v.value) for v in checked.violations.listed] == [
            (Rule.CARDINALITY, "p2"),
            (Rule.ENDPOINT, "x"),
        ]

    def test_those_that_are_short_all_the_same(self) -> None:
        rows = [edge("new1", "p1", "x"), edge("n2", "p1", "b1")]
        checked = Checked([of("Needs", *rows)], LIMITED)
        assert checked.violations.counts == {Rule.ENDPOINT: 1, Rule.CARDINALITY: 1}
        assert checked.violations.listed[0].value == "p2"

    def test_an_edge_that_is_too_many_elsewhere_is_not_lost(self) -> None:
        checked = Checked([of("Sits", edge("s1", "p2", "b1"))], LIMITED)
        assert checked.bad == {"Sits": [0]}
        assert checked.one.message.endswith("source 'p2' has 2, allowed 1..1")


class TestNodesThatWereRefused:
    PARTS = (part("q1", serial="s"), part("q2", serial="s"))

    def test_an_edge_there_is_no_mistake_and_takes_no_place(self) -> None:
        rows = [edge("new1", "b1", "q2"), edge("new2", "b1", "q1"), edge("new3", "b1", "p1")]
        checked = Checked([of("Part", *self.PARTS), of("Holds", *rows)], NODES)
        assert checked.bad == {"Part": [1]}
        rest = Checked([of("Part", self.PARTS[0]), of("Holds", *rows)], NODES)
        assert rest.bad == {"Holds": [0]}

    def test_a_key_given_twice_is_there(self) -> None:
        rows = [edge(f"new{n}", "b1", "q1") for n in range(3)]
        checked = Checked([of("Part", part("q1"), part("q1")), of("Holds", *rows)], NODES)
        assert checked.bad == {"Part": [1], "Holds": [2]}

    def test_a_source_that_may_go_is_not_short(self) -> None:
        deltas = [
            of("Part", part("p1", serial="s"), part("p2", serial="s"), is_overwrite=True),
            of("Bin", node("b1"), is_overwrite=True),
            of("Holds", is_overwrite=True),
            of("Needs", edge("new1", "p1", "b1"), is_overwrite=True),
            of("Sits", edge("new1", "p1", "b1"), is_overwrite=True),
        ]
        checked = Checked(deltas, LIMITED)
        assert checked.bad == {"Part": [1]}
        assert checked.violations.counts == {Rule.UNIQUE: 1}
