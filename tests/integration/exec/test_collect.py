"""What becomes of the rows of a match: columns, groups, order, limits, as the oracle has them."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import BudgetExceeded, DataError, ParameterError
from omnigraph_core.exec import (
    aggregate,
    collect,
    distinct,
    group,
    order,
    ordinals,
    scope,
    value_counts,
)
from omnigraph_core.exec.collect import run_read
from omnigraph_core.exec.trace import Trace
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from tests.support import oracle
from tests.support.cases import each
from tests.support.dense_runs import NOTHING, PLENTY
from tests.support.examples import examples
from tests.support.result_halves import Items, catalog, expected, items, new_items, queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.oracle_graph import Node


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return new_items(tmp_path_factory.mktemp("collect"))


@pytest.fixture(scope="module", params=[PLENTY, NOTHING], ids=["kept", "too large"])
def stored(request: pytest.FixtureRequest, graph: Omnigraph) -> Items:
    """All columns in memory, or none of them."""
    return Items(graph, request.param)


@contextmanager
def hurried() -> Iterator[None]:
    """Rows come a few at a time, and what is done for many is done for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scope, "PORTION_ROWS", 7)
        patch.setattr(aggregate, "_PORTION_ROWS", 5)
        patch.setattr(aggregate, "_MOST_WAITING", 3)
        patch.setattr(distinct, "_MOST_WAITING", 3)
        patch.setattr(collect, "_MOST_WAITING", 3)
        patch.setattr(order, "_FEW", 2)
        patch.setattr(order, "_BLOCKS", 2)
        patch.setattr(group, "_SMALL_SPACE", 1)
        patch.setattr(group, "_SPACE_PER_ROW", 0)
        patch.setattr(ordinals, "_FEW", 0)
        patch.setattr(value_counts, "_MOST_FLAGS", 30)
        patch.setattr(value_counts, "_MOST_WAITING", 3)
        yield


def agrees(stored: Items, text: str, limit: int = 4, offset: int = 2) -> None:
    """Equal rows in the same order; without an order, as many of those there are."""
    found = stored.rows(text, limit=limit, offset=offset)
    wanted = expected(text, limit=limit, offset=offset)
    if "order {" in text:
        assert found == wanted
        return
    assert len(found) == len(wanted)
    uncut = text.partition("\nlimit")[0] + ("}" if "\nlimit" in text else "")
    everything = expected(uncut, limit=limit, offset=offset)
    for row in found:
        everything.remove(row)


@settings(max_examples=examples(400), deadline=None)
@given(queries(), st.integers(0, 6), st.integers(0, 30))
def test_results(stored: Items, text: str, limit: int, offset: int) -> None:
    agrees(stored, text, limit, offset)


@settings(max_examples=examples(400), deadline=None)
@given(queries(), st.integers(0, 6), st.integers(0, 30))
def test_results_of_rows_that_come_in_portions(
    stored: Items, text: str, limit: int, offset: int
) -> None:
    with hurried():
        agrees(stored, text, limit, offset)


# What the oracle has no word for


def test_the_schema_is_the_one_that_was_promised(stored: Items) -> None:
    match = "$a: Item  $a.small < $limit  optional { $a needs $b }"
    text = (
        f"query q($limit: I64) {{ match {{ {match} }} return {{ $a, $b, $a.moment, $b.tags, "
        '$a.spot, 1, "x" as text, now(), search($a.name, "a") } }'
    )
    for limit in (-99, 99):
        table = stored.table(text, limit=limit)

        assert table.schema == stored.run(text).schema
        assert bool(table.num_rows) is (limit == 99)


@each("clause", ["limit $n", "limit 3 offset $n"])
@each("result", ["$a.id", "count($a)", "distinct"])
def test_a_negative_count_of_rows_is_refused(stored: Items, result: str, clause: str) -> None:
    shown = "return distinct { $a.id }" if result == "distinct" else f"return {{ {result} }}"
    text = f"query q($n: I64) {{ match {{ $a: Item }} {shown} {clause} }}"

    with pytest.raises(ParameterError, match=r"\$n: .* is at least 0, found -1"):
        stored.table(text, n=-1)


def test_a_sum_that_does_not_fit_is_refused(stored: Items) -> None:
    with pytest.raises(DataError, match=r"sum of \$a.big exceeds U64"):
        stored.table("query q() { match { $a: Item } return { sum($a.big) } }")


def test_rows_that_do_not_fit_the_budget_are_refused(stored: Items) -> None:
    run = stored.run(
        "query q() { match { $a: Item  $b: Item } return { $a.id, $b.id as b } order { b } }",
        budget=4_000,
    )
    with pytest.raises(BudgetExceeded) as caught:
        run_read(run, run.plan)
    assert caught.value.clause in ("return", "scan $b: Item")


def test_the_match_stops_when_there_are_enough_rows(stored: Items) -> None:
    with hurried():
        for shown in ("{ $a.id, $b.id as b, $c.id as c }", "distinct { $a.title, $c.title as c }"):
            run = stored.run(
                f"query q() {{ match {{ $a: Item  $b: Item  $c: Item }} return {shown} limit 2 }}"
            )
            run.trace = Trace()

            assert run_read(run, run.plan).num_rows == 2
            work = run.trace.work_of(run.plan.steps[-1])
            assert work is not None
            assert work.rows_out < 23**2


def test_best_rows_take_no_more_memory_than_they_need(stored: Items) -> None:
    with hurried(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(scope, "PORTION_ROWS", 21)
        run = stored.run(
            "query q() { match { $a: Item  $b: Item  $c: Item } return { $c.id } "
            "order { $c.whole desc, $b.name } limit 2 }"
        )
        run_read(run, run.plan)

    assert 0 < run.guard.peak < 12 * 23**2


@pytest.mark.long("best rows show the same bound, and test_query_limits that of a process")
def test_groups_take_no_more_memory_than_they_need(stored: Items) -> None:
    with hurried():
        run = stored.run(
            "query q() { match { $a: Item  $b: Item  $c: Item } "
            "return { $a.title, sum($b.whole), min($c.name), count(distinct $c.kind) } }"
        )
        assert run_read(run, run.plan).num_rows == 3

    assert 0 < run.guard.peak < 4 * 23**2


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("return { $a.id } limit 3", {"limit": (23, 3), "return": (3, 3)}),
        ("return { $a.id } order { $a.name } limit 3", {"order": (23, 3), "return": (3, 3)}),
        ("return { $a.id } order { $a.name }", {"order": (23, 23), "return": (23, 23)}),
        ("return distinct { $a.title } order { $a.title }", {"distinct": (23, 3), "order": (3, 3)}),
        (
            "return { $a.title, count($a) } having { count($a) > 7 }",
            {"group": (23, 3), "having": (3, 2), "return": (2, 2)},
        ),
    ],
)
def test_a_profile_has_the_rows_of_every_part(
    stored: Items, text: str, parts: dict[str, tuple[int, int]]
) -> None:
    run = stored.run(f"query q() {{ match {{ $a: Item }} {text} }}")
    run.trace = Trace()
    run_read(run, run.plan)

    for part, rows in parts.items():
        work = run.trace.work_of(part)
        assert work is not None
        assert (work.rows_in, work.rows_out) == rows


# Ranks

PAIRS = "query q($limit: I64) { match { $a: Item  $a needs $b } "
NEAREST = "nearest($b.spot, [1.0, 0.25])"
WORDS = 'bm25($b.title, "yy x")'


def pairs() -> list[tuple[Node, Node]]:
    compiled = compile_one(PAIRS + "return { $a } }", catalog(), None).ir
    assert isinstance(compiled, QueryIR)
    found = oracle.solutions(compiled, items())
    return [(row["a"], row["b"]) for row in found]  # type: ignore[misc]


def distance(item: Node) -> float | None:
    spot = item.get("spot")
    if not isinstance(spot, tuple):
        return None
    (x, y), scale = spot, math.hypot(1.0, 0.25)
    return 1 - (x + 0.25 * y) / (math.hypot(x, y) * scale)  # type: ignore[operator,arg-type]


@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_nearest_rows_first(stored: Items, limit: int) -> None:
    order = f"order {{ {NEAREST}, $a.title desc }} limit $limit offset 1"
    found = stored.rows(
        f"{PAIRS} return {{ $a.id, $b.id as b, {NEAREST} as d }} {order} }}", limit=limit
    )

    reached = [(a, b) for a, b in pairs() if distance(b) is not None]
    reached.sort(key=lambda pair: (pair[0].id, pair[1].id))
    reached.sort(key=lambda pair: str(pair[0].get("title")), reverse=True)
    reached.sort(key=lambda pair: round(distance(pair[1]) or 0, 9))
    wanted = reached[1 : limit + 1]
    assert [(row["a.id"], row["b"]) for row in found] == [(a.id, b.id) for a, b in wanted]
    assert [row["d"] for row in found] == pytest.approx([distance(b) for _, b in wanted])


@pytest.mark.parametrize("cut", ["", "limit 6"])
def test_best_texts_first(stored: Items, cut: str) -> None:
    text = f"{PAIRS} return {{ $a.id, $b.id as b, {WORDS} as s }}"
    every = stored.rows(text + "}", limit=0)
    found = stored.rows(f"{text} order {{ {WORDS} desc }} {cut} }}", limit=0)

    assert any(row["s"] is None for row in every)
    hits = [row for row in every if row["s"] is not None]
    hits.sort(key=lambda row: (-row["s"], row["a.id"], row["b"]))
    assert len({row["s"] for row in hits}) == 2
    assert found == (hits[:6] if cut else hits)


def test_fused_ranks_need_the_whole_match(stored: Items) -> None:
    rank = f"rrf({NEAREST}, {WORDS})"
    text = f"{PAIRS} return {{ $a.id, $b.id as b, {rank} as r }}"
    found = stored.rows(f"{text} order {{ {rank}, $a.title }} limit 9 }}", limit=0)
    by_alias = stored.rows(f"{text} order {{ r desc, $a.title, $b.id }} limit 9 }}", limit=0)
    some = stored.rows(f"{text} limit 9 }}", limit=0)

    scores = fused(9)
    titles = {item.id: str(item.get("title")) for item in items().nodes["Item"].values()}
    reached = [(a.id, b.id) for a, b in pairs() if b.id in scores]
    reached.sort(key=lambda pair: (-scores[pair[1]][0], titles[pair[0]], scores[pair[1]][1], pair))
    assert [(row["a.id"], row["b"]) for row in found] == reached[:9]
    assert [row["r"] for row in found] == pytest.approx([scores[b][0] for _, b in reached[:9]])
    assert [row["r"] for row in by_alias] == pytest.approx([row["r"] for row in found])
    assert all(row["r"] == scores.get(row["b"], (None,))[0] for row in some)


def fused(limit: int) -> dict[str, tuple[float, int]]:
    """Score and place by id, for the matched items that either ranking reaches."""
    matched = {b.id: b for _, b in pairs()}
    distances = [(distance(b), b.id) for b in matched.values()]
    near = sorted((round(found, 9), id) for found, id in distances if found is not None)
    arms = [[id for _, id in near[:limit]], best_texts(matched)]
    scores: dict[str, tuple[float, int]] = {}
    for arm in arms:
        for rank, id in enumerate(arm, 1):
            score, place = scores.get(id, (0.0, len(scores)))
            scores[id] = (score + 1 / (60 + rank), place)
    return scores


def best_texts(matched: Mapping[str, Node]) -> list[str]:
    """`yy` is rarer than `x` among the titles, so it counts for more."""
    hits = [item for item in matched.values() if item.get("title") in ("x", "yy")]
    return [item.id for item in sorted(hits, key=lambda item: (item.get("title") == "x", item.id))]


@pytest.mark.parametrize("rank", [NEAREST, WORDS, f"rrf({NEAREST}, {WORDS})"])
def test_different_rows_by_rank(stored: Items, rank: str) -> None:
    text = f"{PAIRS} return {{ $b.title, {rank} as r }} order {{ {rank} }} limit 1000 }}"
    rows = stored.rows(text, limit=0)
    found = stored.rows(text.replace("return", "return distinct"), limit=0)

    assert len(found) < len(rows)
    assert {tuple(row.values()) for row in found} == {tuple(row.values()) for row in rows}
    assert len({tuple(row.values()) for row in found}) == len(found)
    scores = [row["r"] for row in found]
    assert scores == sorted(scores, reverse=rank != NEAREST)


def test_null_ranks_nothing(stored: Items) -> None:
    text = (
        "query q($v: Vector(2)?) { match { $a: Item } return { $a.id, nearest($a.spot, $v) as d }"
    )

    assert stored.rows(f"{text} order {{ nearest($a.spot, $v) }} limit 5 }}", v=None) == []
    assert [row["d"] for row in stored.rows(f"{text} limit 5 }}", v=None)] == [None] * 5
