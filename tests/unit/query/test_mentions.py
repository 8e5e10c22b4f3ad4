"""Every kind of expression gives up its variables and takes new names for them."""

from __future__ import annotations

from omnigraph_core.query.mentions import mentions, rename_condition
from omnigraph_core.query.typed import (
    Aggregate,
    AggregateFunction,
    All,
    Any,
    Bm25,
    ColumnValue,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    Nearest,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    Rrf,
    TextFunction,
    TextMatch,
    TypedExpr,
    TypedOp,
)
from omnigraph_core.types import I64, STRING, PropType, Scalar
from tests.support.cases import each

A = PropertyValue("a", "text", STRING)
B = PropertyValue("b", "text", STRING)
WORD = Constant("x", STRING)

EXPRESSIONS: list[tuple[TypedExpr, set[str]]] = [
    (WORD, set()),
    (ParamValue("n", STRING), set()),
    (NowValue(), set()),
    (ColumnValue(0, "n"), set()),
    (A, {"a"}),
    (NodeValue("a", "Part"), {"a"}),
    (TextMatch(TextFunction.SEARCH, A, WORD), {"a"}),
    (TextMatch(TextFunction.FUZZY, A, B, Constant(1, I64)), {"a", "b"}),
    (Nearest(A, B), {"a", "b"}),
    (Bm25(A, WORD), {"a"}),
    (Rrf((Nearest(A, WORD), Bm25(B, WORD)), Constant(60, I64)), {"a", "b"}),
    (Aggregate(AggregateFunction.MAX, A, STRING), {"a"}),
]


@each(("expr", "expected"), EXPRESSIONS)
def test_expressions(expr: TypedExpr, expected: set[str]) -> None:
    assert mentions(expr) == expected
    renamed = rename_condition(Holds(expr), {"a": "x"})
    assert mentions(renamed) == {"x" if name == "a" else name for name in expected}
    assert rename_condition(renamed, {"x": "a"}) == Holds(expr)


def test_conditions() -> None:
    options = Constant(("x",), PropType(Scalar.STRING, is_list=True))
    parts = (Compare(A, TypedOp.EQ, B), IsIn(A, options), IsNull(B, is_negated=True), Holds(A))
    condition = All((Any(parts), IsNull(NodeValue("c", "Part"))))
    assert mentions(condition) == {"a", "b", "c"}
    assert mentions(rename_condition(condition, {"a": "b"})) == {"b", "c"}
    assert rename_condition(condition, {}) == condition
