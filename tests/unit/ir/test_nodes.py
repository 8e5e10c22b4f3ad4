"""Nodes refuse to exist when ill-formed, and say what they could have had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.ir.nodes import (
    AntiJoin,
    Delete,
    Expand,
    Filter,
    Insert,
    MutationIR,
    NodeScan,
    OptionalJoin,
    OrderKey,
    QueryIR,
    ReturnColumn,
    Update,
    anti_join,
    introduces,
    lacks,
    optional_join,
    uses,
)
from omnigraph_core.query.checked import Direction
from omnigraph_core.query.typed import (
    TARGET,
    Aggregate,
    AggregateFunction,
    ColumnValue,
    Constant,
    EntityKind,
    IsNull,
    NodeValue,
    NowValue,
    PropertyValue,
)
from omnigraph_core.types import I64, STRING
from tests.support.cases import each
from tests.support.ir_samples import age, named, older, query
from tests.support.ir_samples import uses as walk

if TYPE_CHECKING:
    from collections.abc import Callable

SCAN = NodeScan("p", "Part")
COUNT = Aggregate(AggregateFunction.COUNT, NodeValue("p", "Part"), I64)
WHERE = IsNull(PropertyValue(TARGET, "age", I64.nullable()))


def expand(**changes: object) -> Expand:
    fields: dict[str, object] = {
        "src_var": "p",
        "dst_var": "q",
        "edge_type": "Uses",
        "direction": Direction.OUT,
        "dst_type": "Part",
    }
    return Expand(**{**fields, **changes})  # type: ignore[arg-type]


ILL_FORMED: dict[str, tuple[Callable[[], object], str]] = {
    "a scan filtered by another variable": (
        lambda: NodeScan("p", "Part", (age("q", ">", 1),)),
        "a scan's filters may mention $p only, found $q",
    ),
    "an expand filtered by another variable": (
        lambda: walk("p", "q", named("p", "bolt")),
        "an expand's filters may mention $q only, found $p",
    ),
    "no hops": (lambda: expand(min_hops=0), "hops need 1 <= min <= max, found 0 and 1"),
    "hops the wrong way": (lambda: expand(min_hops=3, max_hops=2), "hops need 1 <= min <= max"),
    "an edge over several hops": (
        lambda: expand(edge_binding="w", max_hops=2),
        "an expand that binds its edge makes exactly one hop",
    ),
    "an edge named like an end": (lambda: expand(edge_binding="q"), "$q cannot be both"),
    "a closing expand with filters": (
        lambda: expand(is_closing=True, dst_filters=(age("q", ">", 1),)),
        "a closing expand has no filters",
    ),
    "an open expand to itself": (lambda: expand(dst_var="p"), "from $p to itself must be closing"),
    "an empty anti-join": (lambda: anti_join(()), "an anti-join has at least one inner operator"),
    "an anti-join on too much": (
        lambda: AntiJoin(("p", "x"), (walk("p", "q"),)),
        "an anti-join takes in what its inner side lacks, $p, not $p, $x",
    ),
    "an optional join on too little": (
        lambda: OptionalJoin((), (walk("p", "q"),), ("q",)),
        "an optional join takes in what its inner side lacks, $p, not nothing",
    ),
    "an optional join that hides a variable": (
        lambda: OptionalJoin(("p",), (walk("p", "q"),), ()),
        "an optional join introduces $q, not nothing",
    ),
    "an expand from nowhere": (
        lambda: query(SCAN, walk("x", "q")),
        "Expand uses $x, which is not bound; bound there: $p",
    ),
    "a closing expand to nowhere": (
        lambda: query(SCAN, expand(is_closing=True)),
        "Expand uses $q, which is not bound; bound there: $p",
    ),
    "a filter too early": (
        lambda: query(SCAN, Filter(older("p", "q")), walk("p", "q")),
        "Filter uses $q, which is not bound; bound there: $p",
    ),
    "an anti-join too early": (
        lambda: query(anti_join((walk("p", "q"),)), SCAN),
        "AntiJoin uses $p, which is not bound; bound there: nothing",
    ),
    "a name bound twice": (
        lambda: query(SCAN, walk("p", "q"), NodeScan("q", "Part")),
        "NodeScan binds $q a second time",
    ),
    "an inner name taken outside": (
        lambda: query(SCAN, NodeScan("q", "Part"), anti_join((walk("p", "q"),))),
        "Expand binds $q a second time",
    ),
    "a column of an unbound variable": (
        lambda: QueryIR("q", columns=(ReturnColumn("n", NodeValue("p", "Part"), None),)),
        "the result uses $p, which is not bound",
    ),
    "a node type of an unbound variable": (
        lambda: QueryIR("q", node_types=(("p", "Part"),)),
        "node_types uses $p, which is not bound",
    ),
    "two columns of one name": (
        lambda: QueryIR("q", columns=(ReturnColumn("n", NowValue(), None),) * 2),
        "result columns have distinct names, found n, n",
    ),
    "an aggregate without groups": (
        lambda: QueryIR("q", pipeline=(SCAN,), columns=(ReturnColumn("n", COUNT, I64),)),
        "an aggregate needs a grouped query",
    ),
    "a sort key without its column": (
        lambda: QueryIR("q", order_by=(OrderKey(ColumnValue(1, "n")),)),
        "no result column 1 named n",
    ),
    "a limit that is no number": (
        lambda: QueryIR("q", limit=NowValue()),
        "limit and offset are numbers or parameters",
    ),
    "an insert of one property twice": (
        lambda: Insert(EntityKind.NODE, "Part", (("age", NowValue()), ("age", NowValue()))),
        "an insert assigns each property once, found age, age",
    ),
    "an insert of a variable": (
        lambda: Insert(EntityKind.NODE, "Part", (("age", NodeValue("p", "Part")),)),
        "an insert assigns values, not $p",
    ),
    "an update of nothing": (
        lambda: Update(EntityKind.NODE, "Part", (), WHERE),
        "an update sets at least one property",
    ),
    "an update where another row": (
        lambda: Update(EntityKind.NODE, "Part", (("age", NowValue()),), age("p", ">", 1)),
        "an update's where may mention $target only, found $p",
    ),
    "a delete where another row": (
        lambda: Delete(EntityKind.NODE, "Part", age("p", ">", 1)),
        "a delete's where may mention $target only, found $p",
    ),
    "an empty mutation": (lambda: MutationIR("m", (), ()), "at least one statement"),
    "a mixed mutation": (
        lambda: MutationIR(
            "m",
            (),
            (Insert(EntityKind.NODE, "Part", ()), Delete(EntityKind.NODE, "Part", WHERE)),
        ),
        "a mutation either deletes or writes, never both",
    ),
}


@each(("make", "message"), ILL_FORMED.values(), ids=ILL_FORMED.keys())
def test_ill_formed(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvariantBroken) as refused:
        make()
    assert message in refused.value.message


def test_joins_read_their_variables_off_the_inner_side() -> None:
    inner = (walk("p", "q"), Filter(older("q", "x")), optional_join((walk("q", "r"),)))
    assert anti_join(inner).outer_vars == ("p", "x")
    join = optional_join(inner)
    assert (join.outer_vars, join.introduced) == (("p", "x"), ("q", "r"))
    assert lacks((SCAN, *inner)) == {"x"}


@each(
    ("op", "needs", "adds"),
    [
        (SCAN, set(), ("p",)),
        (expand(), {"p"}, ("q",)),
        (expand(edge_binding="w"), {"p"}, ("q", "w")),
        (expand(is_closing=True), {"p", "q"}, ()),
        (expand(is_closing=True, edge_binding="w"), {"p", "q"}, ("w",)),
        (Filter(older("p", "q")), {"p", "q"}, ()),
        (anti_join((walk("p", "q"),)), {"p"}, ()),
        (optional_join((walk("p", "q"),)), {"p"}, ("q",)),
    ],
)
def test_what_operators_need_and_add(
    op: NodeScan | Expand | Filter | AntiJoin | OptionalJoin, needs: set[str], adds: tuple[str, ...]
) -> None:
    assert uses(op) == needs
    assert introduces(op) == adds


def test_ties_break_by_name_with_anonymous_variables_last() -> None:
    made = query(SCAN, walk("p", "_#1"), expand(edge_binding="a"))
    assert made.variables == ("a", "p", "q", "_#1")


def test_a_well_formed_query_may_use_everything_it_binds() -> None:
    name = PropertyValue("p", "name", STRING)
    made = QueryIR(
        "q",
        pipeline=(SCAN,),
        columns=(ReturnColumn("p.name", name, STRING), ReturnColumn("n", COUNT, I64)),
        is_grouped=True,
        order_by=(OrderKey(ColumnValue(1, "n", I64), is_descending=True),),
        limit=Constant(3, I64),
    )
    assert made.variables == ("p",)
