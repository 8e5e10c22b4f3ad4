"""Each rule's example holds, and the order of rules is the one that helps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.ir.nodes import Filter, NodeScan, anti_join, optional_join
from omnigraph_core.ir.rules import RULES, optimize
from omnigraph_core.ir.rules.fold import fold_condition
from omnigraph_core.ir.rules.levels import FALSE, TRUE
from omnigraph_core.ir.rules.push import push_filters
from omnigraph_core.ir.rules.reroot import choose_roots, selectivity
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.typed import (
    All,
    Any,
    ColumnValue,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    TypedCondition,
    TypedOp,
)
from omnigraph_core.types import BOOL, DATETIME, I64, STRING, PropType, Scalar
from tests.support.cases import each
from tests.support.ir_samples import CONTEXT, age, age_in, named, older, query, uses

if TYPE_CHECKING:
    from omnigraph_core.query.mentions import Term

A, B = age("p", ">", 1), age("p", ">", 2)


def test_rules_are_documented_by_before_and_after() -> None:
    assert all(rule.__doc__ and ">>>" in rule.__doc__ for rule in RULES)


def compare(left: object, op: TypedOp, right: object, type: PropType = I64) -> Compare:
    return Compare(Constant(left, type), op, Constant(right, type))  # type: ignore[arg-type]


@each(
    ("condition", "expected"),
    [
        (All(()), TRUE),
        (Any(()), FALSE),
        (All((A,)), A),
        (Any((A, A)), A),
        (All((A, All((B, TRUE)))), All((A, B))),
        (Any((A, Any((B, FALSE)))), Any((A, B))),
        (All((A, FALSE)), FALSE),
        (Any((A, TRUE)), TRUE),
        (Any((All((A, FALSE)), B)), B),
        (compare(1, TypedOp.LT, 2.5), TRUE),
        (compare(2, TypedOp.LE, 1), FALSE),
        (compare(2, TypedOp.GE, 2), TRUE),
        (compare(2, TypedOp.GT, 2), FALSE),
        (compare(2, TypedOp.NE, 2), FALSE),
        (compare(None, TypedOp.EQ, 2), FALSE),
        (compare(2, TypedOp.NE, None), FALSE),
        (compare("beta ray", TypedOp.HAS_TEXT, "ta r", STRING), TRUE),
        (compare("beta", TypedOp.STARTS_WITH, "eta", STRING), FALSE),
        (compare(("a", "b"), TypedOp.HAS_MEMBER, "b", STRING), TRUE),
        (Holds(Constant(True, BOOL)), TRUE),
        (Holds(Constant(False, BOOL)), FALSE),
        (Holds(Constant(None, BOOL.nullable())), FALSE),
        (age_in("p"), FALSE),
        (age_in("p", 4), age("p", "=", 4)),
        (age_in("p", 4, 4), age("p", "=", 4)),
        (age_in("p", 4, 5, 4), age_in("p", 4, 5)),
        (IsIn(Constant(4, I64), Constant((4,), PropType(Scalar.I64, is_list=True))), TRUE),
        (IsNull(PropertyValue("p", "name", STRING)), FALSE),
        (IsNull(PropertyValue("p", "name", STRING), is_negated=True), TRUE),
        (IsNull(ParamValue("n", I64), is_negated=True), TRUE),
        (IsNull(NowValue()), FALSE),
        (IsNull(Constant(1, I64)), FALSE),
        (IsNull(NodeValue("p", "Part")), FALSE),
    ],
)
def test_known_conditions_fold(condition: TypedCondition, expected: TypedCondition) -> None:
    assert fold_condition(condition) == expected


@each(
    "condition",
    [
        A,
        older("p", "q"),
        Compare(PropertyValue("p", "age", I64), TypedOp.EQ, PropertyValue("p", "age", I64)),
        Compare(NowValue(), TypedOp.GT, ParamValue("since", DATETIME)),
        IsNull(PropertyValue("p", "age", I64.nullable())),
        IsNull(ParamValue("n", I64.nullable()), is_negated=True),
        IsNull(NodeValue("p", "Part", is_nullable=True)),
        IsNull(ColumnValue(0, "n", I64)),
        Holds(PropertyValue("p", "spare", BOOL)),
        IsIn(
            PropertyValue("p", "age", I64), ParamValue("ages", PropType(Scalar.I64, is_list=True))
        ),
    ],
)
def test_unknown_conditions_stay(condition: TypedCondition) -> None:
    assert fold_condition(condition) == condition


@each(
    ("conditions", "expected"),
    [
        ((), 0),
        ((age("p", "=", 3),), 0),
        ((named("p", "bolt"),), 2),
        ((Compare(Constant("b", STRING), TypedOp.EQ, PropertyValue("p", "id", STRING)),), 2),
        ((replace(named("p", "bolt"), op=TypedOp.NE),), 0),
        ((replace(named("p", "bolt"), right=PropertyValue("q", "name", STRING)),), 0),
        ((IsIn(PropertyValue("p", "id", STRING), ParamValue("ids", STRING)),), 1),
    ],
)
def test_selectivity(conditions: tuple[TypedCondition, ...], expected: int) -> None:
    assert selectivity(conditions, CONTEXT.catalog.nodes["Part"]) == expected


def test_a_unique_group_selects_when_all_its_columns_are_given() -> None:
    node = replace(CONTEXT.catalog.nodes["Part"], key=None, unique=(("name", "age"),))
    assert selectivity((named("p", "bolt"),), node) == 0
    assert selectivity((named("p", "bolt"), age("p", "=", 3)), node) == 2
    assert selectivity((named("p", "bolt"), age_in("p", 3, 4)), node) == 1


def test_a_part_tied_to_another_is_left_alone() -> None:
    """Two scans closed onto each other are one part with two starts: nothing to choose."""
    closing = replace(uses("p", "q"), is_closing=True)
    tied = query(NodeScan("p", "Part"), NodeScan("q", "Part", (named("q", "bolt"),)), closing)
    assert choose_roots(tied, CONTEXT) == tied


def test_a_part_started_behind_an_optional_join_is_left_alone() -> None:
    late = query(
        NodeScan("p", "Part"),
        optional_join((uses("p", "q"),)),
        NodeScan("r", "Part"),
        uses("r", "s", named("s", "bolt")),
    )
    assert choose_roots(late, CONTEXT) == late


def test_joins_that_became_trivial_go() -> None:
    dropped = query(
        NodeScan("p", "Part"),
        anti_join((uses("p", "q"), Filter(FALSE))),
        optional_join((Filter(age("p", ">", 1)),)),
    )
    assert optimize(dropped, CONTEXT.catalog) == query(NodeScan("p", "Part"))
    never = query(NodeScan("p", "Part"), anti_join((Filter(TRUE),)))
    assert optimize(never, CONTEXT.catalog).pipeline[0] == Filter(FALSE)


def test_an_optional_join_that_finds_nothing_still_introduces_its_variables() -> None:
    nothing = query(NodeScan("p", "Part"), optional_join((uses("p", "q"), Filter(FALSE))))
    assert optimize(nothing, CONTEXT.catalog).variables == ("p", "q")


@pytest.mark.parametrize("count", [10, 100])
def test_pushing_looks_into_each_condition_a_few_times(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once per operator in between would be quadratic work."""
    seen: Counter[object] = Counter()

    def counted(*terms: Term) -> frozenset[str]:
        seen.update(terms)
        return mentions(*terms)

    monkeypatch.setattr("omnigraph_core.ir.rules.push.mentions", counted)
    chain = [uses(f"p{i}", f"p{i + 1}") for i in range(count)]
    filters = [Filter(age(f"p{i}", ">", i)) for i in range(count)]
    pushed = push_filters(query(NodeScan("p0", "Part"), *chain, *filters), CONTEXT)
    assert len(pushed.pipeline) == count + 1
    assert max(seen.values()) <= 3
