"""The planner: what a plan says about its query as a whole, and what its steps may leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.explain import explain_expr
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.build import plan_query
from omnigraph_core.plan.steps import AntiJoinStep, ExpandStep, Making, OptionalStep, ScanStep
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

if TYPE_CHECKING:
    from omnigraph_core.plan.steps import QueryPlan

CATALOG = compile_schema(
    """
    node Part { name: String @key  size: I32?  shape: Vector(2)  about: String? }
    node Pair { left: String  right: String  @key(left, right) }
    edge Uses: Part -> Part { count: I32 }
    """
)


def plan(query: str) -> QueryPlan:
    ir = compile_one(query, CATALOG).ir
    assert isinstance(ir, QueryIR)
    return plan_query(ir, CATALOG)


def read(match: str, result: str = "{ $p.size }", params: str = "$n: String") -> QueryPlan:
    return plan(f"query q({params}) {{ match {{ {match} }} return {result} }}")


def expand_of(found: QueryPlan, place: int = 1) -> ExpandStep:
    step = found.steps[place]
    assert isinstance(step, ExpandStep)
    return step


@each(
    ("match", "result"),
    [
        ("$p: Part {name: $n}", "{ $p.size }"),
        ("$p: Part $n = $p.name", "{ $p }"),
        ('$p: Part {name: "bolt"}', "{ $p, $p.name } limit 1"),
        ("$p: Part $p.id = $n", "{ $p.size } order { $p.size }"),
        ("$p: Part {name: $n}", "distinct { $p.size } limit 7"),
        ('$p: Part $p.name in ["bolt"]', "{ $p.size }"),
    ],
)
def test_a_read_of_one_node_is_recognised(match: str, result: str) -> None:
    lookup = read(match, result).lookup
    assert lookup is not None
    assert (lookup.variable, lookup.type_name) == ("p", "Part")
    assert lookup.property.property in ("id", "name")
    assert explain_expr(lookup.given) in ("$n", '"bolt"')


@each(
    ("match", "result"),
    [
        ("$p: Part", "{ $p.size }"),
        ("$p: Part {name: $n, size: 3}", "{ $p.size }"),
        ("$p: Part $p.name != $n", "{ $p.size }"),
        ("$p: Part $p.about = $n", "{ $p.size }"),
        ("$p: Part $p.name = $p.about", "{ $p.size }"),
        ('$p: Part $p.name in ["bolt", "nut"]', "{ $p.size }"),
        ("$p: Part {name: $n} $q: Part", "{ $p.size }"),
        ("$p: Part {name: $n} $p uses $q", "{ $p.size }"),
        ("$p: Part {name: $n} not { $p uses $q }", "{ $p.size }"),
        ("$p: Part {name: $n}", "{ count($p) as c }"),
        ("$p: Part {name: $n}", "{ $p.size, 1 as one }"),
        ("$p: Part {name: $n}", "{ $p.size } limit 0"),
        ("$p: Part {name: $n}", "{ $p.size } limit 3 offset 1"),
        ("$p: Part {name: $n}", "{ $p.size } order { bm25($p.about, $n) }"),
        ("$p: Part {name: $n}", "{ $p.size, bm25($p.about, $n) as score }"),
        ("$p: Pair {left: $n}", "{ $p.left }"),
        ('$p: Pair {left: $n, right: "b"}', "{ $p.left }"),
    ],
)
def test_what_takes_more_than_a_key_is_no_lookup(match: str, result: str) -> None:
    assert read(match, result).lookup is None


def test_a_limit_that_is_a_parameter_is_no_lookup() -> None:
    """It may be zero, or negative."""
    found = read("$p: Part {name: $n}", "{ $p.size } limit $k", "$n: String, $k: I64")
    assert found.lookup is None


@each(
    ("result", "is_set"),
    [
        ("{ $p.size }", False),
        ("distinct { $p.size }", True),
        ("{ count($p) as n }", False),
        ("{ $p.name, sum($p.size) as n }", False),
        ("{ $p.name, avg($p.size) as n }", False),
        ("{ min($p.size) as n, max($p.name) as m }", True),
        ("{ $p.name, count(distinct $p.size) as n }", True),
        ("{ max($p.size) as m } having { count($p) > 3 }", False),
        ("{ max($p.size) as m } order { count($p) }", False),
        ("distinct { count($p) as n }", False),
    ],
)
def test_whether_repeated_rows_matter(result: str, is_set: bool) -> None:
    found = read("$p: Part $p uses $q", result)
    assert found.is_set is is_set
    assert expand_of(found).making is not (Making.EXISTS if not is_set else Making.COUNT)


@each(
    ("result", "making"),
    [
        ("{ $p.size }", Making.ROWS),
        ("{ $p.size } order { $p.size }", Making.ROWS),
        ("{ count($q) as n }", Making.COUNT),
        ("{ $p.name, sum($p.size) as n }", Making.COUNT),
        ("{ count($q.name) as n }", Making.COUNT),
        ("{ count($q.size) as n }", Making.ROWS),
        ("{ $q.name, count($p) as n }", Making.ROWS),
        ("{ count(distinct $p) as n }", Making.EXISTS),
        ("{ count(distinct $q) as n }", Making.ROWS),
        ("distinct { $p.size }", Making.EXISTS),
        ("distinct { $q.size }", Making.ROWS),
    ],
)
def test_what_an_expand_makes(result: str, making: Making) -> None:
    assert expand_of(read("$p: Part $p uses $q", result)).making is making


def test_a_scan_that_only_multiplies_is_counted() -> None:
    scans = read("$p: Part $q: Part", "{ $p.name, count($q) as n }").steps
    assert [step.making for step in scans if isinstance(step, ScanStep)] == [
        Making.ROWS,
        Making.COUNT,
    ]


def test_an_edge_nobody_reads_is_not_told_from_its_parallels() -> None:
    found = read("$p: Part $p $u:uses $q", "distinct { $q.name }")
    assert expand_of(found).op.edge_binding is None
    counted = read("$p: Part $p $u:uses $q", "{ $q.name, count($p) as n }")
    assert expand_of(counted).op.edge_binding == "u"
    summed = read("$p: Part $p $u:uses $q", "{ sum($u.count) as n }")
    assert (expand_of(summed).op.edge_binding, expand_of(summed).needed) == ("u", {"u"})


def test_a_closing_expand_of_counted_edges_counts() -> None:
    match = "$p: Part $p uses $q $q $u:uses $p"
    assert expand_of(read(match, "{ count($p) as n }"), 2).making is Making.COUNT
    assert expand_of(read(match, "distinct { $p.name }"), 2).making is Making.ROWS


def test_inside_an_anti_join_nobody_asks_how_many() -> None:
    step = read("$p: Part not { $p $u:uses $q $q.size > 3 }").steps[1]
    assert isinstance(step, AntiJoinStep)
    (inner,) = step.inner
    assert isinstance(inner, ExpandStep)
    assert (inner.making, inner.op.edge_binding) == (Making.EXISTS, None)
    assert not inner.is_deduplicating, "the outer row tells its starts apart"


def test_outer_variables_are_carried_as_far_as_they_are_used() -> None:
    match = "$p: Part $p uses $q not { $q uses $r $r.size > $p.size $r uses $s }"
    step = read(match, "{ $q.name }").steps[2]
    assert isinstance(step, AntiJoinStep)
    assert [inner.needed for inner in step.inner] == [{"p", "r"}, {"r"}, set()]
    assert step.needed == {"q"}


def test_an_optional_join_keeps_what_is_asked_for() -> None:
    match = "$p: Part optional { $p uses $q $q uses $r }"
    step = read(match, "{ $p.name, count($r) as n }").steps[1]
    assert isinstance(step, OptionalStep)
    assert step.needed == {"p", "r"}
    assert [inner.needed for inner in step.inner] == [{"q"}, {"r"}]
    plain = read(match, "{ $p.name }").steps[1]
    assert isinstance(plain, OptionalStep)
    assert [inner.needed for inner in plain.inner] == [{"q"}, set()]
    assert [i.making for i in plain.inner if isinstance(i, ExpandStep)] == [Making.ROWS] * 2


def test_rows_are_made_one_where_a_variable_was_dropped() -> None:
    found = read("$p: Part $p uses $q $q uses $r", "distinct { $r.name, $p.name }")
    assert [expand_of(found, i).is_deduplicating for i in (1, 2)] == [False, True]
    dropped_before = read(
        "$p: Part $p uses $q $p.size < $q.size $q uses $r", "distinct { $q.name, $r.name }"
    )
    assert [expand_of(dropped_before, i).is_deduplicating for i in (1, 3)] == [False, True]


def test_labels_leave_conditions_out() -> None:
    found = read("$p: Part {size: 3} $p uses{1,2} $q $q.size > 3")
    assert [step.label for step in found.steps] == [
        "scan $p: Part",
        "expand $p -Uses{1,2}-> $q: Part",
    ]


def test_ordered_rows_keep_all_variables_and_others_do_not() -> None:
    match = "$p: Part $p $u:uses $q not { $q uses $_ }"
    assert read(match, "{ $p.name } order { $p.size }").row_needs == {"p", "q", "u"}
    assert read(match, "{ $p.name }").row_needs == {"p"}
    assert read(match, "distinct { $p.name, $p.size } order { $p.size }").row_needs == {"p"}
    ranked = read(match, "{ $p.name } order { bm25($q.about, $n) } limit 3")
    assert ranked.row_needs == {"p", "q", "u"}
