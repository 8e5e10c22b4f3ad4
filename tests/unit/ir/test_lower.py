"""What the corpus cannot show: shapes the checker never makes, and clauses that get lost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.ir.compile import compile_checked
from omnigraph_core.ir.explain import explain, explain_pipeline
from omnigraph_core.ir.lower import lower_match
from omnigraph_core.query.check import check_queries
from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedFilter,
    CheckedNegation,
    CheckedOptional,
    CheckedTraversal,
    Direction,
)
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each
from tests.support.ir_samples import age, older
from tests.unit.query.test_corpus_check import CASES

if TYPE_CHECKING:
    from omnigraph_core.query.mentions import Term
    from tests.support.corpus import Case


ACCEPTED = [(case, schema) for case, schema in CASES if case.expected.startswith("ok\n")]


@each(("case", "schema"), ACCEPTED, ids=[str(case) for case, _ in ACCEPTED])
def test_whatever_the_checker_accepts_can_be_lowered(case: Case, schema: str) -> None:
    text, catalog = case.sections[1], compile_schema(schema)
    accepted = check_queries(parse_queries(text), catalog, Source(text)).require()
    assert accepted
    for checked in accepted:
        assert explain(compile_checked(checked, catalog).ir)


def part(name: str) -> CheckedBinding:
    return CheckedBinding(name, "Part", ())


def link(left: str, right: str, edge: str | None = None) -> CheckedTraversal:
    ends = (left, "Part", right, "Part")
    return CheckedTraversal(*ends, "Uses", Direction.OUT, edge_binding=edge)


def lowered(*clauses: CheckedClause) -> list[str]:
    return list(explain_pipeline(lower_match(clauses)))


def test_a_local_whose_name_is_taken_outside_gets_a_fresh_one() -> None:
    """The block's `$q` is its own: it is not among the variables the block shares."""
    block = CheckedNegation(
        (
            link("p", "q"),
            CheckedFilter(older("q", "p")),
            CheckedNegation((link("q", "r"),), ("q",)),
        ),
        ("p",),
    )
    assert lowered(part("p"), link("p", "q"), block) == [
        "scan $p: Part",
        "expand $p -Uses-> $q: Part",
        "anti-join on $p",
        "  expand $p -Uses-> $q~1: Part",
        "  filter $q~1.age > $p.age",
        "  anti-join on $q~1",
        "    expand $q~1 -Uses-> $r: Part",
    ]


def test_a_taken_name_is_noticed_through_several_blocks() -> None:
    inner = CheckedNegation((link("r", "q", "w"),), ("r",))
    block = CheckedNegation((link("p", "r"), inner), ("p",))
    assert lowered(part("p"), link("p", "q", "w"), block)[2:] == [
        "anti-join on $p",
        "  expand $p -Uses-> $r: Part",
        "  anti-join on $r",
        "    expand $r -$w~1:Uses-> $q~1: Part",
    ]


def test_a_nested_local_of_an_equal_name_keeps_it() -> None:
    """Renaming the block's `$q` must not touch a deeper `$q` that is local there."""
    inner = CheckedNegation((link("p", "q"),), ("p",))
    block = CheckedNegation((link("p", "q"), inner), ("p",))
    assert lowered(part("p"), link("p", "q"), block)[2:] == [
        "anti-join on $p",
        "  expand $p -Uses-> $q~1: Part",
        "  anti-join on $p",
        "    expand $p -Uses-> $q~2: Part",
    ]


def test_variables_an_optional_block_introduces_are_renamed_inside_a_negation() -> None:
    optional = CheckedOptional((link("q", "r"),), ("q",), ("r",))
    block = CheckedNegation((link("p", "q"), optional), ("p",))
    taken = (part("p"), link("p", "q"), link("q", "r"))
    assert lowered(*taken, block)[3:] == [
        "anti-join on $p",
        "  expand $p -Uses-> $q~1: Part",
        "  optional join on $q~1 introducing $r~1",
        "    expand $q~1 -Uses-> $r~1: Part",
    ]


def test_a_binding_with_a_taken_name_is_renamed_with_its_conditions() -> None:
    binding = CheckedBinding("q", "Part", (age("q", ">", 3),))
    block = CheckedNegation((binding, CheckedFilter(older("q", "p"))), ("p",))
    assert lowered(part("p"), part("q"), block)[2:] == [
        "anti-join on $p",
        "  scan $q~1: Part where $q~1.age > 3",
        "  filter $q~1.age > $p.age",
    ]


@pytest.mark.parametrize(
    "clause",
    [
        CheckedFilter(age("x", ">", 1)),
        CheckedNegation((link("x", "y"),), ("x",)),
    ],
)
def test_a_clause_about_nothing_bound_is_never_dropped(clause: CheckedClause) -> None:
    with pytest.raises(InvariantBroken, match="every clause of a match is emitted"):
        lower_match((part("p"), clause))


def test_an_optional_block_about_nothing_bound_is_never_dropped() -> None:
    block = CheckedOptional((CheckedFilter(age("x", ">", 1)),), (), ())
    with pytest.raises(InvariantBroken, match="every clause of a match is emitted"):
        lower_match((part("p"), block))


@pytest.mark.parametrize("count", [10, 100])
def test_each_condition_is_looked_into_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition may wait for many operators; looking again each time is quadratic work."""
    seen: Counter[object] = Counter()

    def counted(*terms: Term) -> frozenset[str]:
        seen.update(terms)
        return mentions(*terms)

    monkeypatch.setattr("omnigraph_core.ir.lower.mentions", counted)
    links = [link(f"p{i}", f"p{i + 1}") for i in range(count)]
    ages = [CheckedFilter(age(f"p{i}", ">", i)) for i in range(count)]
    assert len(lower_match((part("p0"), *ages, *links))) == 2 * count + 1
    assert set(seen.values()) == {1}
