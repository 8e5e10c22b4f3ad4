"""Processes that load and mutate at the same moment: each lands whole, or is told why not.

Whatever rules rows keep together hold in every version that was ever published.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, DataError
from tests.support.constraints import (
    BIN,
    LIES_IN,
    MOST_BINS,
    PART,
    bin,
    check_every_version,
    ids_of,
    jsonl,
    lies_in,
    new_graph,
    part,
    rows_of,
)
from tests.support.examples import LONG
from tests.support.processes import hear, say, spawn
from tests.support.stores import Store, new_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.support.constraints import Row
    from tests.support.processes import Worker
    from tests.support.s3 import S3Server

RACERS = 4
ROUNDS = 5 if LONG else 2
SHARED = ["s0", "s1", "s2", "s3", "s4"]
BINS = ["b0", "b1", "b2", "b3"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a writer was told: a commit's version, or an error and the rules that were broken."""

    version: int | None = None
    error: str | None = None
    rules: tuple[str, ...] = ()
    is_retryable: bool = False

    @property
    def is_done(self) -> bool:
        return self.error is None


def take_orders() -> None:
    """In a worker: load or mutate what each line says, and say how that ended."""
    opened: dict[str, Omnigraph] = {}
    say("ready")
    while (line := hear()) is not None:
        address, verb, *given = json.loads(line)
        if address not in opened:
            opened[address] = Omnigraph.open(address)
        og = opened[address]
        try:
            say(json.dumps([_done(og, verb, given)]))
        except (DataError, ConflictError) as refused:
            rules = sorted({str(v.rule) for v in getattr(refused, "violations", ())})
            say(json.dumps([None, type(refused).__name__, rules, refused.retryable]))


def _done(og: Omnigraph, verb: str, given: Sequence[Any]) -> int | None:
    if verb == "look":
        return og.snapshot().manifest_version
    if verb == "mutate":
        commit = og.mutate(*given, actor="racer").commit
    else:
        commit = og.load(given[0].encode(), mode=verb, actor="racer").commit
    return None if commit is None else commit.manifest_version


@pytest.fixture(scope="module")
def racers(s3_server: S3Server) -> Iterator[Sequence[Worker]]:
    """Processes for the whole module: to start them takes longer than a test."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(spawn(f"{__name__}:take_orders", env=s3_server.environment()))
            for _ in range(RACERS)
        ]
        for worker in started:
            assert worker.next_line() == "ready"
        yield started


def race(racers: Sequence[Worker], og: Omnigraph, orders: Sequence[Sequence[Any]]) -> list[Answer]:
    """All at once, each with its own order; what each was told."""
    for worker, order in zip(racers, orders, strict=True):
        worker.send(json.dumps([og.uri, *order]))
    return [_answer(worker.next_line()) for worker in racers]


def _answer(line: str) -> Answer:
    version, *problem = json.loads(line)
    if not problem:
        return Answer(version)
    error, rules, is_retryable = problem
    return Answer(None, error, tuple(rules), is_retryable)


def load(mode: str, *records: Row) -> tuple[str, str]:
    return mode, jsonl(*records).decode()


@pytest.mark.parametrize("mode", ["append", "merge"])
@pytest.mark.parametrize("store", list(Store))
def test_loads_of_different_rows(
    store: Store, mode: str, racers: Sequence[Worker], request: pytest.FixtureRequest
) -> None:
    """They meet at the tables, and all of them land: a load that loses a race goes on by itself."""
    og = new_graph(new_root(store, request))
    rounds = ROUNDS if store is Store.LOCAL else 2
    expected: list[str] = []
    for number in range(rounds):
        own = [[f"p{number}-{racer}-{i}" for i in range(20)] for racer in range(RACERS)]
        answers = race(racers, og, [load(mode, *_row_of_parts(skus)) for skus in own])
        assert [answer.is_done for answer in answers] == [True] * RACERS, answers
        assert len({answer.version for answer in answers}) == RACERS, "a commit each"
        expected += [sku for skus in own for sku in skus]
    assert ids_of(og, PART) == sorted(expected)
    assert ids_of(og, BIN) == sorted(sku for sku in expected if sku.endswith("-0"))
    assert len(ids_of(og, LIES_IN)) == len(expected)
    assert check_every_version(og) == rounds * RACERS + 1


def _row_of_parts(skus: Sequence[str]) -> list[Row]:
    """Parts, with codes of their own, that all lie in one bin."""
    label = skus[0]
    parts = [part(sku, code=f"code {sku}", stock=1) for sku in skus]
    return [*parts, bin(label), *(lies_in(sku, label) for sku in skus)]


@dataclass(frozen=True, slots=True)
class Clash:
    """Rows that several writers want at once: how many can have them, and what stops the others."""

    name: str
    rows: Callable[[str, int], tuple[Row, ...]]
    winners: int
    rule: str


CLASHES = (
    Clash("one code", lambda _, n: (part(f"c{n}", code="wanted"),), 1, "unique"),
    Clash("one pair of ends", lambda shared, _: (lies_in(shared, "b0"),), 1, "unique"),
    Clash(
        "places of one source",
        lambda shared, n: (lies_in(shared, BINS[n]),),
        MOST_BINS,
        "cardinality",
    ),
)


@pytest.mark.parametrize("mode", ["append", "merge"])
@pytest.mark.parametrize("clash", CLASHES, ids=lambda clash: clash.name)
def test_loads_that_want_the_same(
    clash: Clash, mode: str, tmp_path_factory: pytest.TempPathFactory, racers: Sequence[Worker]
) -> None:
    """Beside what they fight for, each load has rows of its own: all of it is there, or nothing."""
    for shared in SHARED[:ROUNDS]:
        og = filled_graph(tmp_path_factory, racers)
        orders = [
            load(
                mode,
                part(f"own {racer}"),
                *clash.rows(shared, racer),
                lies_in(f"own {racer}", "b3"),
            )
            for racer in range(RACERS)
        ]
        answers = race(racers, og, orders)
        check_wholeness(og, answers)
        assert sum(answer.is_done for answer in answers) == clash.winners, answers
        refused = {(answer.error, answer.rules) for answer in answers if not answer.is_done}
        assert refused == {("ConstraintViolation", (clash.rule,))}


def filled_graph(directories: pytest.TempPathFactory, racers: Sequence[Worker]) -> Omnigraph:
    """Some parts that lie nowhere, some bins; everybody has looked at it."""
    og = new_graph(str(directories.mktemp("race") / "graph"))
    og.load(jsonl(*(part(sku) for sku in SHARED), *(bin(label) for label in BINS)))
    race(racers, og, [("look",)] * len(racers))
    return og


def check_wholeness(og: Omnigraph, answers: Sequence[Answer]) -> None:
    """Of every writer the part and the edge that only it wrote, or neither; and every rule."""
    done = [f"own {number}" for number, answer in enumerate(answers) if answer.is_done]
    rows = rows_of(og, og.snapshot())
    assert [row["id"] for row in rows[PART] if row["id"].startswith("own")] == done
    ends = [row["src"] for row in rows[LIES_IN] if row["src"].startswith("own")]
    assert sorted(ends) == done
    assert check_every_version(og) == 2 + len(done), "a refused write publishes nothing"
    versions = [answer.version for answer in answers if answer.is_done]
    assert sorted(filter(None, versions)) == list(range(3, 3 + len(done)))


def test_appends_of_the_same_keys(
    tmp_path_factory: pytest.TempPathFactory, racers: Sequence[Worker]
) -> None:
    for _ in range(ROUNDS):
        og = filled_graph(tmp_path_factory, racers)
        orders = [
            load("append", part(f"own {n}"), part("same", stock=n), lies_in(f"own {n}", "b3"))
            for n in range(RACERS)
        ]
        answers = race(racers, og, orders)
        check_wholeness(og, answers)
        refused = [(answer.error, answer.rules) for answer in answers if not answer.is_done]
        assert refused == [("DuplicateKey", ("key",))] * (RACERS - 1)
        [winner] = [number for number, answer in enumerate(answers) if answer.is_done]
        assert stock_of(og, "same") == winner


def test_merges_of_the_same_keys(
    tmp_path_factory: pytest.TempPathFactory, racers: Sequence[Worker]
) -> None:
    """All land, and the rows are those of the last one."""
    for _ in range(ROUNDS):
        og = filled_graph(tmp_path_factory, racers)
        orders = [
            load("merge", part(f"own {n}"), part("same", stock=n), lies_in(f"own {n}", "b3"))
            for n in range(RACERS)
        ]
        answers = race(racers, og, orders)
        check_wholeness(og, answers)
        assert all(answer.is_done for answer in answers)
        versions = [answer.version or 0 for answer in answers]
        assert stock_of(og, "same") == versions.index(max(versions))


def stock_of(og: Omnigraph, sku: str) -> int | None:
    rows = rows_of(og, og.snapshot())[PART]
    [stock] = [row["stock"] for row in rows if row["id"] == sku]
    return stock


def test_overwrites_of_one_table(
    tmp_path_factory: pytest.TempPathFactory, racers: Sequence[Worker]
) -> None:
    """An overwrite is never repeated on rows its author has not seen."""
    for _ in range(ROUNDS):
        og = filled_graph(tmp_path_factory, racers)
        orders = [load("overwrite", part("same", stock=n), part(f"own {n}")) for n in range(RACERS)]
        answers = race(racers, og, orders)
        losers = [answer for answer in answers if not answer.is_done]
        assert {(answer.error, answer.is_retryable) for answer in losers} <= {
            ("VersionConflict", True)
        }
        done = [(answer.version or 0, n) for n, answer in enumerate(answers) if answer.is_done]
        _, last = max(done)
        assert ids_of(og, PART) == sorted(["same", f"own {last}"])
        assert stock_of(og, "same") == last
        assert check_every_version(og) == 2 + len(done)


INSERT_PART = "query add($sku: String, $code: String?) { insert Part { sku: $sku, code: $code } }"
INSERT_EDGE = """
query put($own: String, $sku: String, $label: String) {
  insert Part { sku: $own }
  insert LiesIn { from: $own, to: "b3" }
  insert LiesIn { from: $sku, to: $label }
}
"""


@pytest.mark.parametrize(
    ("label_of", "winners", "rule"),
    [
        pytest.param(lambda _: "b0", 1, "unique", id="one pair of ends"),
        pytest.param(lambda n: BINS[n], MOST_BINS, "cardinality", id="places of one source"),
    ],
)
def test_inserts_that_want_the_same(
    label_of: Callable[[int], str],
    winners: int,
    rule: str,
    tmp_path_factory: pytest.TempPathFactory,
    racers: Sequence[Worker],
) -> None:
    for shared in SHARED[:ROUNDS]:
        og = filled_graph(tmp_path_factory, racers)
        orders = [
            ("mutate", INSERT_EDGE, {"own": f"own {n}", "sku": shared, "label": label_of(n)})
            for n in range(RACERS)
        ]
        answers = race(racers, og, orders)
        check_wholeness(og, answers)
        assert sum(answer.is_done for answer in answers) == winners
        refused = {(answer.error, answer.rules) for answer in answers if not answer.is_done}
        assert refused == {("ConstraintViolation", (rule,))}


def test_inserts_of_different_keys(
    tmp_path_factory: pytest.TempPathFactory, racers: Sequence[Worker]
) -> None:
    og = filled_graph(tmp_path_factory, racers)
    for number in range(ROUNDS):
        orders = [
            ("mutate", INSERT_PART, {"sku": f"p{number}-{n}", "code": f"{number}-{n}"})
            for n in range(RACERS)
        ]
        assert all(answer.is_done for answer in race(racers, og, orders))
    mine = {f"p{number}-{n}" for number in range(ROUNDS) for n in range(RACERS)}
    assert set(ids_of(og, PART)) == mine | set(SHARED)
    assert check_every_version(og) == 2 + ROUNDS * RACERS
