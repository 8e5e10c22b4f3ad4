"""Queries that may not go on: too much memory, too long, no longer wanted.

What is counted are portions, not seconds: a query asks between portions whether to go on, so one
that is stopped at its n-th question has done n portions of work and no more.
"""

from __future__ import annotations

import gc
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import BudgetExceeded, QueryCancelled, QueryStopped, QueryTimeout
from omnigraph_core.exec.guard import Cancellation
from tests.support.crowds import DEGREE, PEOPLE, build
from tests.support.processes import spawn

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

MEBIBYTE = 2**20
THREE = "$a: Person  $b: Person  $c: Person"
NEAR = "nearest($a.v, [1.0, 0.0, 0.0, 0.0])"
ENDLESS = {
    "product": f"match {{ {THREE} }} return {{ $a.name, $b.name, $c.age }}",
    "order": f"match {{ {THREE} }} return {{ $a.name }} order {{ $b.age, $c.name }}",
    "first of an order": (
        f"match {{ {THREE} }} return {{ $a.name }} order {{ $b.age, $c.name }} limit 5"
    ),
    "groups": f"match {{ {THREE} }} return {{ $a.name, $b.name, $c.name, count($c) as n }}",
    "distinct": f"match {{ {THREE} }} return distinct {{ $a.name, $b.name, $c.name }}",
    "conditions": (
        f"match {{ {THREE}  $a.name > $b.name  $b.age > $c.age }} return {{ count($a) as n }}"
    ),
    "nothing found": (
        f"match {{ {THREE}  $a.age > $b.age  $b.age > $c.age  $c.age > $a.age }}"
        " return { $a.name } limit 1"
    ),
    "traversals": (
        "match { $a knows $b  $b knows $c  $c knows $d  $d knows $e } return { $a.name, $e.name }"
    ),
    "edges": (
        "match { $a $x:knows $b  $b $y:knows $c  $c $z:knows $d  $d $u:knows $e }"
        " return { $x.since, $u.since }"
    ),
    "hops": "match { $a: Person  $a <knows>{2,6} $b  $c: Person } return { $a.name, $c.name }",
    "not": (
        "match { $a: Person  $b: Person  $c: Person"
        " not { $a knows $d  $d knows $b  $d.age > $c.age } } return { $a.name }"
    ),
    "optional": (
        "match { $a: Person  $b: Person  $c: Person"
        " optional { $a knows $d  $d knows $b  $d.age > $c.age } } return { $a.name, $d.name }"
    ),
    "nearest": f"match {{ {THREE} }} return {{ $b.name }} order {{ {NEAR} }} limit 5",
    "fused": (
        f"match {{ {THREE} }} return {{ $b.name }}"
        f' order {{ rrf({NEAR}, bm25($a.about, "word3")) }} limit 5'
    ),
    "words": (
        f'match {{ {THREE}  search($a.about, "word3") or $b.age > $c.age }}'
        " return { count(distinct $b.name) as n }"
    ),
}
FRUGAL = {"first of an order", "conditions", "nothing found", "words"}
"""These hold next to nothing however long they run."""


CLAUSES = {
    "product": ("scan $", "return"),
    "order": ("scan $", "return", "order"),
    "groups": ("return (groups)",),
    "distinct": ("return distinct",),
    "traversals": ("expand $", "return"),
    "edges": ("expand $", "return"),
    "hops": ("expand $a <-Knows{2,6}-> $b: Person",),
    "not": ("expand $", "scan $", "return"),
    "optional": ("expand $", "optional", "return"),
    "nearest": ("scan $", "return"),
    "fused": ("scan $", "return"),
}
"""What an error may name: the clause whose rows are too many, or that holds them."""


def query(name: str) -> str:
    return f"query q() {{ {ENDLESS[name]} }}"


@pytest.fixture(scope="module")
def og(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return build(str(tmp_path_factory.mktemp("crowd") / "graph"))


class Patience(Cancellation):
    """Is over when it was asked for often enough."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.asked = 0
        self.has_begun = threading.Event()
        self._most = most

    @property
    def is_cancelled(self) -> bool:
        self.asked += 1
        self.has_begun.set()
        return super().is_cancelled or self.asked >= self._most


def assert_works(og: Omnigraph) -> None:
    """Nothing is left of a query that was stopped."""
    asked = "query q() { match { $a: Person {name: $n}  $a knows $b } return { count($b) as n } }"
    asked = asked.replace("q()", "q($n: String)")
    assert og.query("main", asked, params={"n": "p7"}).to_pylist() == [{"n": DEGREE}]


# No longer wanted


@pytest.mark.parametrize("most", [1, 2, 7])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_cancelled_query_does_not_begin_another_portion(
    og: Omnigraph, name: str, most: int
) -> None:
    patience = Patience(most)
    with pytest.raises(QueryCancelled):
        og.query("main", query(name), cancellation=patience)
    assert patience.asked == most
    assert_works(og)


@pytest.mark.parametrize("name", ["product", "hops", "not", "words"])
def test_another_thread_cancels(og: Omnigraph, name: str) -> None:
    patience = Patience(10**9)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(og.query, "main", query(name), memory=2**40, cancellation=patience)
        assert patience.has_begun.wait(120)
        patience.cancel()
        error = running.exception()
    assert isinstance(error, QueryCancelled)
    assert error.code == "query.cancelled"
    assert_works(og)


def test_cancelled_before_it_began(og: Omnigraph) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    point = 'query q() { match { $a: Person { name: "nobody" } } return { $a.name } }'
    for text in (query("product"), point):
        with pytest.raises(QueryCancelled):
            og.query("main", text, cancellation=cancellation)


def test_one_cancellation_stops_several(og: Omnigraph) -> None:
    patience = Patience(10**9)
    with ThreadPoolExecutor(3) as pool:
        running = [
            pool.submit(og.query, "main", query(name), cancellation=patience, memory=2**40)
            for name in ("conditions", "nothing found", "words")
        ]
        assert patience.has_begun.wait(120)
        patience.cancel()
        assert [type(each.exception()) for each in running] == [QueryCancelled] * 3


# Too long


@pytest.mark.parametrize("name", ENDLESS)
def test_time_is_up(og: Omnigraph, name: str) -> None:
    with pytest.raises(QueryTimeout, match=r"longer than 0\.05 s") as stopped:
        og.query("main", query(name), timeout=0.05, memory=2**40)
    assert stopped.value.details() == {"seconds": 0.05}
    assert stopped.value.retryable
    assert_works(og)


def test_the_time_may_be_a_setting(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT", "0.01")
    with pytest.raises(QueryTimeout, match=r"longer than 0\.01 s"):
        og.query("main", query("conditions"))
    with pytest.raises(QueryTimeout, match=r"longer than 0\.02 s"):
        og.query("main", query("conditions"), timeout=0.02)
    with pytest.raises(QueryTimeout):
        og.run_query_at(og.snapshot().manifest_version, query("conditions"))


# Too much memory


@pytest.mark.parametrize("name", [name for name in ENDLESS if name not in FRUGAL])
def test_too_much_memory(og: Omnigraph, name: str) -> None:
    with pytest.raises(BudgetExceeded) as stopped:
        og.query("main", query(name), memory=8 * MEBIBYTE)
    error = stopped.value
    assert error.budget == 8 * MEBIBYTE < error.needed
    assert error.clause.startswith(CLAUSES[name])
    assert f"`{error.clause}`" in error.message
    assert error.kind == "bad_request"
    assert_works(og)


@pytest.mark.parametrize("name", sorted(FRUGAL))
def test_what_holds_little_needs_little(og: Omnigraph, name: str) -> None:
    """They are not over their budget after many portions, however small it is."""
    patience = Patience(60)
    with pytest.raises(QueryCancelled):
        og.query("main", query(name), memory=16 * MEBIBYTE, cancellation=patience)


def test_a_result_counts_as_well(og: Omnigraph) -> None:
    """Its rows may be few bytes in the match and many once they are spelled out."""
    asked = "query q() { match { $a knows $b } return { $a, $b } }"
    assert og.query("main", asked, memory=16 * MEBIBYTE).num_rows == PEOPLE * DEGREE
    with pytest.raises(BudgetExceeded) as stopped:
        og.query("main", asked, memory=2 * MEBIBYTE)
    assert stopped.value.clause == "return"


def test_sorting_counts_as_well(og: Omnigraph) -> None:
    asked = "query q() { match { $a $x:knows $b } return { $x.since } order { $b.age } }"
    assert og.query("main", asked, memory=16 * MEBIBYTE).num_rows == PEOPLE * DEGREE
    with pytest.raises(BudgetExceeded) as stopped:
        og.query("main", asked, memory=2 * MEBIBYTE)
    assert stopped.value.clause == "order"


def test_the_budget_may_be_a_setting(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY", "8M")
    with pytest.raises(BudgetExceeded) as stopped:
        og.query("main", query("product"))
    assert stopped.value.budget == 8 * MEBIBYTE
    with pytest.raises(BudgetExceeded) as stopped:
        og.query("main", query("product"), memory=4 * MEBIBYTE)
    assert stopped.value.budget == 4 * MEBIBYTE


def test_the_process_stays_small(og: Omnigraph) -> None:
    """As much as may be used, what is on its way, and no more: rows are not left to be found."""
    names = ("product", "order", "groups", "distinct", "traversals", "not", "optional", "fused")
    asked = [query(name) for name in names]
    budget = 16 * MEBIBYTE
    told = spawn("tests.support.crowds:growth", og.uri, asked, budget).wait().result()
    assert None not in told["clauses"]
    assert told["grown"] < budget + 128 * MEBIBYTE


def test_rows_go_as_soon_as_nobody_needs_them(og: Omnigraph) -> None:
    """They are not left to the collector, which would find them many portions later."""
    inner = "$c knows $d  $d.age > $a.age  $d.name > $b.name"
    two_hops = "$a knows $b  $b knows $c  $c.name > $a.name  $c.age != $b.age"
    asked = f"query q() {{ match {{ {two_hops}  not {{ {inner} }} }} return {{ count($a) as n }} }}"
    og.query("main", asked)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        og.query("main", asked)
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert most > 4 * MEBIBYTE
    assert left < MEBIBYTE


# What once was a trap


def test_not_over_a_traversal_is_no_product(og: Omnigraph) -> None:
    """Driven from the outer rows: no pair of people is ever made."""
    asked = (
        "query q() { match { $a: Person  not { $a knows $b  $b.age > 88 } } return { $a.name } }"
    )
    found = og.query("main", asked, memory=2 * MEBIBYTE).to_pylist()
    ages = {number: number % 90 for number in range(PEOPLE)}
    expected = {
        f"p{n}"
        for n in range(PEOPLE)
        if not any(ages[(n * 7 + step * 13 + 1) % PEOPLE] > 88 for step in range(DEGREE))
    }
    assert {row["a.name"] for row in found} == expected
    assert 0 < len(found) < PEOPLE


def test_stopping_is_one_kind_of_error() -> None:
    for kind in (BudgetExceeded, QueryTimeout, QueryCancelled):
        assert issubclass(kind, QueryStopped)
