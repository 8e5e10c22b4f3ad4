"""A match on a graph large enough for every way of working: the rows are the same each time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.errors import BudgetExceeded, QueryCancelled
from omnigraph_core.exec import joins, reach, scope
from omnigraph_core.exec.guard import Cancellation, Guard
from omnigraph_core.exec.match import run_match
from omnigraph_core.exec.trace import Trace
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.build import plan_query
from tests.support.oracle_graph import OracleGraph
from tests.support.people import company, knows, people_catalog, person, works_at
from tests.support.stored_graphs import StoredGraph, store_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.plan.steps import QueryPlan

PEOPLE = 120
EDGES = 1500
AGES = 10


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredGraph:
    """People who know each other, some several times over or themselves; half of them work."""
    rng = np.random.default_rng(11)
    persons = [person(f"p{n}", n % AGES) for n in range(PEOPLE)]
    # The square makes low numbers popular: some neighbourhoods are large, some empty.
    ends = (rng.random((EDGES, 2)) ** 2 * PEOPLE).astype(int)
    edges = [knows(i, f"p{a}", f"p{b}") for i, (a, b) in enumerate(ends)]
    companies = [company(f"c{n}") for n in range(3)]
    works = [works_at(n, f"p{n}", f"c{n % 3}") for n in range(0, PEOPLE, 2)]
    graph = OracleGraph(people_catalog(), [*persons, *companies], [*edges, *works])
    return store_graph(tmp_path_factory.mktemp("paths"), graph)


@pytest.fixture(params=[2**18, 50], ids=["at once", "in portions"])
def portion(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(scope, "PORTION_ROWS", request.param)
    monkeypatch.setattr(joins, "_OUTER_ROWS", request.param)
    size: int = request.param
    return size


def planned(text: str) -> QueryPlan:
    ir = compile_one(text, people_catalog()).ir
    assert isinstance(ir, QueryIR)
    return plan_query(ir, people_catalog())


def found(graph: StoredGraph, match: str, *names: str) -> Counter[tuple[str | None, ...]]:
    """How often each combination of ids comes out of a match."""
    columns = ", ".join(f"${name}.id as {name}" for name in names)
    text = f"query q() {{ match {{ {match} }} return {{ {columns} }} }}"
    return counted(graph, planned(text), names)


def counted(
    graph: StoredGraph, plan: QueryPlan, names: tuple[str, ...]
) -> Counter[tuple[str | None, ...]]:
    run = graph.run(plan)
    rows: Counter[tuple[str | None, ...]] = Counter()

    def take(frame: Frame) -> bool:
        for row in graph.rows(run, frame):
            rows[tuple(None if (e := row[name]) is None else e.id for name in names)] += 1
        return True

    run_match(run, plan.steps, take)
    return rows


def links(graph: StoredGraph) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {f"p{n}": set() for n in range(PEOPLE)}
    for edge in graph.oracle.edges["Knows"]:
        known[edge.src].add(edge.dst)
    return known


def test_two_hops(stored: StoredGraph, portion: int) -> None:
    known = links(stored)
    expected = Counter((a, b, c) for a in known for b in known[a] for c in known[b])
    assert found(stored, "$a: Person $a knows $b $b knows $c", "a", "b", "c") == expected


def test_closing_a_triangle(stored: StoredGraph, portion: int) -> None:
    known = links(stored)
    expected = Counter(
        (a, b, c) for a in known for b in known[a] for c in known[b] if a in known[c]
    )
    match = "$a: Person $a knows $b $b knows $c $c knows $a"
    assert found(stored, match, "a", "b", "c") == expected
    assert found(stored, match, "a", "b", "c") == expected, "the table of pairs is kept"


@pytest.mark.parametrize("closing", ["$c knows $a", "$a knows $c"])
def test_closing_at_one_node_for_all_rows(stored: StoredGraph, portion: int, closing: str) -> None:
    known = links(stored)
    expected = Counter(
        (b, c)
        for b in known["p0"]
        for c in known[b]
        if ("p0" in known[c] if closing == "$c knows $a" else c in known["p0"])
    )
    match = f'$a: Person {{ name: "p0" }} $a knows $b $b knows $c {closing}'
    assert found(stored, match, "b", "c") == expected


def test_edges_between_bound_nodes(stored: StoredGraph, portion: int) -> None:
    edges = stored.oracle.edges["Knows"]
    ways = Counter((edge.src, edge.dst) for edge in edges)
    match = "$a: Person $a knows $b $b $w: knows $a"
    expected = Counter({(a, b): ways[b, a] for a, b in ways if ways[b, a]})
    assert found(stored, match, "a", "b") == expected
    by_edge = found(stored, match, "w")
    linked = {(edge.src, edge.dst) for edge in edges}
    assert by_edge == Counter((e.id,) for e in edges if (e.dst, e.src) in linked)


def test_conditions_on_the_far_end(stored: StoredGraph, portion: int) -> None:
    known = links(stored)
    old = {f"p{n}" for n in range(PEOPLE) if n % AGES >= 7}
    expected = Counter((a, b) for a in known for b in known[a] & old)
    assert found(stored, "$a: Person $a knows $b $b.age >= 7", "a", "b") == expected


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(2**23, id="one batch", marks=pytest.mark.long("many batches are harder")),
        pytest.param(3 * PEOPLE, id="many batches"),
    ],
)
@pytest.mark.parametrize(("least", "most"), [(1, 2), (2, 2), (2, 3)])
def test_several_hops(
    stored: StoredGraph,
    portion: int,
    monkeypatch: pytest.MonkeyPatch,
    cells: int,
    least: int,
    most: int,
) -> None:
    monkeypatch.setattr(reach, "SEEN_CELLS", cells)
    known = links(stored)

    def reached(source: str) -> set[str]:
        result = {source} if least == 1 and source in known[source] else set[str]()
        seen = frontier = {source}
        for distance in range(1, most + 1):
            frontier = {far for near in frontier for far in known[near]} - seen
            seen = seen | frontier
            result |= frontier if distance >= least else set()
        return result

    hops = f"knows{{{least},{most}}}"
    expected = Counter((a, b, c) for a in known for b in known[a] for c in reached(b))
    assert found(stored, f"$a: Person $a knows $b $b {hops} $c", "a", "b", "c") == expected
    closed = Counter((a, b) for a in known for b in known[a] if a in reached(b))
    assert found(stored, f"$a: Person $a knows $b $b {hops} $a", "a", "b") == closed


def test_an_optional_part_of_repeated_nodes(stored: StoredGraph, portion: int) -> None:
    """Many rows share the node the optional part starts from: it is asked once."""
    known = links(stored)
    works = {edge.src: edge.dst for edge in stored.oracle.edges["WorksAt"]}
    expected = Counter((a, b, works.get(b)) for a in known for b in known[a])
    match = "$a: Person $a knows $b optional { $b worksAt $c }"
    assert found(stored, match, "a", "b", "c") == expected


@pytest.mark.parametrize(
    "walk", ["$b knows $c", "$b knows{1,2} $c", "$b $w: knows $c", "$b knows{2,3} $c"]
)
def test_nothing_is_reached_from_null(stored: StoredGraph, portion: int, walk: str) -> None:
    """Also beside rows that do reach something."""
    nobody = "$a: Person optional { $a knows $b $b.age > 100 }"
    expected = Counter((f"p{n}", None, None) for n in range(PEOPLE))
    assert found(stored, f"{nobody} optional {{ {walk} }}", "a", "b", "c") == expected
    assert found(stored, f"{nobody} not {{ {walk} }}", "a") == Counter((a,) for a, *_ in expected)
    closing = walk.replace("$c", "$a")
    assert found(stored, f"{nobody} not {{ {closing} }}", "a") == Counter(
        (a,) for a, *_ in expected
    )
    some = "$a: Person optional { $a knows $b $b.age > 7 }"
    rows = found(stored, f"{some} optional {{ {walk} }}", "a", "b", "c")
    known = links(stored)
    old = {f"p{n}" for n in range(PEOPLE) if n % AGES > 7}
    lonely = {a for a in known if not known[a] & old}
    assert lonely
    assert {a for a, b, _ in rows if b is None} == lonely
    assert all(c is None for _, b, c in rows if b is None)


def test_nobody_knows_null(stored: StoredGraph, portion: int) -> None:
    match = """
        $p: Person { name: "p0" } $a: Person optional { $a knows $b $b.age > 100 }
        not { $p knows $b }
    """
    assert links(stored)["p0"]
    assert found(stored, match, "a") == Counter((f"p{n}",) for n in range(PEOPLE))


@pytest.mark.parametrize(
    ("inner", "is_reached"),
    [
        ("$b worksAt $_", lambda known, works, a, b: b in works),
        ("$b knows $a", lambda known, works, a, b: a in known[b]),
        ("$b.age > 4", lambda known, works, a, b: int(b[1:]) % AGES > 4),
        ("$b knows $c $c worksAt $_", lambda known, works, a, b: bool(known[b] & works.keys())),
        (
            "$b knows $c $c knows $a",
            lambda known, works, a, b: any(a in known[c] for c in known[b]),
        ),
        ("$z: Company $z.name != $b.name", lambda known, works, a, b: True),
        ("$z: Company $z.name = $b.name", lambda known, works, a, b: False),
        (
            "$b knows $c not { $c worksAt $_ }",
            lambda known, works, a, b: bool(known[b] - works.keys()),
        ),
    ],
)
def test_what_must_not_be_there(
    stored: StoredGraph,
    portion: int,
    inner: str,
    is_reached: Callable[[dict[str, set[str]], dict[str, str], str, str], bool],
) -> None:
    known = links(stored)
    works = {edge.src: edge.dst for edge in stored.oracle.edges["WorksAt"]}
    expected = Counter(
        (a, b) for a in known for b in known[a] if not is_reached(known, works, a, b)
    )
    assert found(stored, f"$a: Person $a knows $b not {{ {inner} }}", "a", "b") == expected


def test_counting_makes_no_row_per_match(stored: StoredGraph, portion: int) -> None:
    known = links(stored)
    plan = planned(
        "query q() { match { $a: Person $a knows $b $b knows $c } return { count($c) as n } }"
    )
    run = stored.run(plan)
    frames: list[Frame] = []
    run_match(run, plan.steps, lambda frame: frames.append(frame) is None)
    total = sum(len(known[b]) for a in known for b in known[a])
    assert sum(int(f.weights.sum()) for f in frames if f.weights is not None) == total
    if portion > total:
        assert sum(frame.length for frame in frames) <= PEOPLE


@pytest.mark.parametrize("start", ["$a: Person", '$a: Person { name: "p0" }'])
def test_counting_what_passes_conditions(stored: StoredGraph, portion: int, start: str) -> None:
    """All at once where there are many rows, and one by one where there are few."""
    known = links(stored)
    old = {f"p{n}" for n in range(PEOPLE) if n % AGES >= 7}
    plan = planned(
        f"query q() {{ match {{ {start} $a knows $b $b.age >= 7 }}"
        " return { $a.id as a, count($b) as n } }"
    )
    sources = known if start == "$a: Person" else ["p0"]
    expected = {(a,): len(known[a] & old) for a in sources}
    assert counted(stored, plan, ("a",)) == Counter({a: n for a, n in expected.items() if n})


def test_a_set_lets_each_node_through_once(stored: StoredGraph, portion: int) -> None:
    known = links(stored)
    plan = planned("query q() { match { $a: Person $a knows $b } return distinct { $b.id } }")
    assert counted(stored, plan, ("b",)) == Counter((b,) for b in set().union(*known.values()))


def test_the_taker_ends_the_match(stored: StoredGraph) -> None:
    plan = planned(
        "query q() { match { $a: Person $b: Person $c: Person } return { $a.id, $b.id, $c.id } }"
    )
    frames: list[Frame] = []
    run_match(stored.run(plan), plan.steps, lambda frame: bool(frames.append(frame)), enough=3)
    assert len(frames) == 1
    assert frames[0].length <= 1024


def test_portions_grow_while_nobody_has_enough(
    stored: StoredGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "_FIRST_ROWS", 4)
    plan = planned("query q() { match { $a: Person $b: Person } return { $a.id, $b.id } }")
    lengths: list[int] = []
    run_match(stored.run(plan), plan.steps, lambda f: lengths.append(f.length) is None, enough=1)
    assert sum(lengths) == PEOPLE**2
    assert lengths[0] < lengths[-2]


def test_what_does_not_fit_names_its_clause(stored: StoredGraph) -> None:
    plan = planned(
        "query q() { match { $a: Person $a knows $b $b knows $c } return { $a.id, $c.id } }"
    )
    run = stored.run(plan, guard=Guard(budget=100))
    with pytest.raises(BudgetExceeded, match="Knows"):
        run_match(run, plan.steps, lambda _: True)


@pytest.mark.parametrize(
    "match",
    [
        "$a: Person $a knows $b $b knows $c",
        "$a: Person $b: Person $c: Person",
        "$a: Person $a knows{1,3} $b $b knows $c",
        "$a: Person $b: Person optional { $b knows $c }",
        "$a: Person $b: Person $c: Person not { $b knows $c }",
    ],
)
def test_a_cancelled_match_stops_between_portions(
    stored: StoredGraph, monkeypatch: pytest.MonkeyPatch, match: str
) -> None:
    monkeypatch.setattr(scope, "PORTION_ROWS", 50)
    monkeypatch.setattr(joins, "_OUTER_ROWS", 50)
    plan = planned(f"query q() {{ match {{ {match} }} return {{ $a.id, $b.id, $c.id }} }}")
    cancellation = Cancellation()
    portions = 0

    def take(_: Frame) -> bool:
        nonlocal portions
        portions += 1
        cancellation.cancel()
        return True

    run = stored.run(plan, guard=Guard(budget=2**30, cancellation=cancellation))
    with pytest.raises(QueryCancelled):
        run_match(run, plan.steps, take)
    assert portions == 1


def test_what_joins_hold_is_given_back(stored: StoredGraph, portion: int) -> None:
    plan = planned(
        "query q() { match { $a: Person optional { $a knows $b } } return { $a.id, $b.id } }"
    )
    run = stored.run(plan)
    run_match(run, plan.steps, lambda _: True)
    assert run.guard.peak > 0
    assert run.guard.held == 0


def test_a_profile_has_the_rows_of_every_step(stored: StoredGraph) -> None:
    known = links(stored)
    plan = planned(
        "query q() { match { $a: Person $a knows $b not { $a worksAt $_ } } return { $b.id } }"
    )
    trace = Trace()
    run_match(stored.run(plan, trace=trace), plan.steps, lambda _: True)
    work = [trace.work_of(step) for step in plan.steps]
    idle = [f"p{n}" for n in range(1, PEOPLE, 2)]
    rows = [(w.rows_in, w.rows_out) for w in work if w is not None]
    last = sum(len(known[name]) for name in idle)
    assert rows == [(1, PEOPLE), (PEOPLE, len(idle)), (len(idle), last)]
    assert all(w is not None and w.seconds >= 0 for w in work)
