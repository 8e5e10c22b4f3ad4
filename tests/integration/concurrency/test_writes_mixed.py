"""Edges are put in while nodes go away: no version that was ever published has an edge too many."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, DataError
from omnigraph_core.manifest.retry import back_off
from tests.support.constraints import (
    BIN,
    LIES_IN,
    PART,
    bin,
    check_every_version,
    ids_of,
    jsonl,
    lies_in,
    new_graph,
    part,
)
from tests.support.examples import LONG
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = ["p0", "p1", "p2"]
BINS = [f"b{number}" for number in range(5)]
TURNS = 30 if LONG else 12
SLOWLY = {"OMNIGRAPH_FAILPOINTS": "publish.before_image=sleep(10)"}
"""Between checking and publishing there is time for others."""
THREADS, EACH = (8, 5) if LONG else (6, 2)

INSERT = "query put($sku: String, $label: String) { insert LiesIn { from: $sku, to: $label } }"
DELETE = "query drop($sku: String) { delete Part where sku = $sku }"
ADD = "query add($sku: String) { insert Part { sku: $sku } }"


def insert_edges(address: str, seed: int) -> dict[str, int]:
    """In a worker, as the others here: how often each ending was met."""
    chance = random.Random(seed)

    def turn(og: Omnigraph) -> None:
        given = {"sku": chance.choice(PARTS), "label": chance.choice(BINS)}
        og.mutate(INSERT, given, actor="inserter")

    return _take_turns(address, turn)


def delete_parts(address: str, seed: int) -> dict[str, int]:
    """Each part is there again at once, and lies nowhere."""
    chance = random.Random(seed)

    def turn(og: Omnigraph) -> None:
        sku = chance.choice(PARTS)
        _again(lambda: og.mutate(DELETE, {"sku": sku}, actor="deleter"))
        og.load(jsonl(part(sku)), actor="deleter")

    return _take_turns(address, turn, TURNS)


def overwrite_parts(address: str, seed: int) -> dict[str, int]:
    """With all parts, or with some: the others may be needed."""
    chance = random.Random(seed)

    def turn(og: Omnigraph) -> None:
        kept = PARTS if chance.random() < 0.5 else chance.sample(PARTS, 2)
        records = jsonl(*(part(sku, stock=chance.randrange(9)) for sku in kept))
        _again(lambda: og.load(records, mode="overwrite", actor="overwriter"))

    return _take_turns(address, turn)


def _take_turns(
    address: str, turn: Callable[[Omnigraph], None], turns: int | None = None
) -> dict[str, int]:
    """So many, or until told to stop."""
    og = Omnigraph.open(address)
    say("ready")
    hear()
    stopped = threading.Event()
    threading.Thread(target=lambda: (hear(), stopped.set()), daemon=True).start()
    endings = Counter(done=0)
    while not stopped.is_set() and endings["done"] != turns:
        try:
            turn(og)
            endings["done"] += 1
        except DataError as refused:
            endings.update(str(rule) for rule in refused.counts)
        except ConflictError as conflict:
            endings["conflict" if conflict.retryable else type(conflict).__name__] += 1
        back_off(4)
    return endings


def _again(attempt: Callable[[], object]) -> None:
    """What depends on rows that moved is for the caller to repeat."""
    for number in range(60):
        try:
            attempt()
            return
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
        back_off(min(number, 5))
    raise AssertionError("others were first sixty times")


def test_no_edge_is_ever_without_its_ends(tmp_path: Path) -> None:
    og = new_graph(str(tmp_path / "graph"))
    records = [*(part(sku) for sku in PARTS), *(bin(label) for label in BINS)]
    og.load(jsonl(*records, *(lies_in(sku, "b0") for sku in PARTS)))
    jobs = ("insert_edges", "insert_edges", "delete_parts", "overwrite_parts")
    with ExitStack() as stack:
        workers = [
            stack.enter_context(spawn(f"{__name__}:{job}", og.uri, seed, env=SLOWLY))
            for seed, job in enumerate(jobs)
        ]
        for worker in workers:
            assert worker.next_line() == "ready"
        for worker in workers:
            worker.send("go")
        *others, deleting, overwriting = workers
        deleter = deleting.wait(120).result()
        for worker in (*others, overwriting):
            worker.send("stop")
        first, second, overwriter = (worker.wait().result() for worker in (*others, overwriting))
    versions = check_every_version(og)
    assert first["done"] + second["done"] > 0
    # Full bins, ends that are gone and others who are always first keep an edge out: nothing else.
    assert {*first, *second} <= {"done", "cardinality", "unique", "endpoint", "conflict"}
    assert deleter == {"done": TURNS}
    assert set(overwriter) <= {"done", "orphan"}
    assert overwriter["done"] > 0
    operations = Counter((commit.actor_id, commit.operation) for commit in og.list_commits())
    assert operations["inserter", "mutate"] == first["done"] + second["done"]
    assert operations["deleter", "load"] == TURNS
    assert operations["overwriter", "load"] == overwriter["done"]
    assert versions == operations.total()


def test_threads_that_share_a_handle(tmp_path: Path) -> None:
    """They insert parts, and edges to them, with keys of their own: all of that lands."""
    og = new_graph(str(tmp_path / "graph"))
    og.load(jsonl(*(bin(label) for label in BINS)))
    start = threading.Barrier(THREADS, timeout=120)

    def insert(thread: int) -> None:
        start.wait()
        for number in range(EACH):
            sku = f"{thread}-{number}"
            og.mutate(ADD, {"sku": sku})
            og.mutate(INSERT, {"sku": sku, "label": BINS[number]})

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(insert, thread) for thread in range(THREADS)]:
            done.result()
    fresh = Omnigraph.open(og.uri)
    skus = sorted(f"{thread}-{number}" for thread in range(THREADS) for number in range(EACH))
    assert ids_of(fresh, PART) == skus
    assert len(ids_of(fresh, LIES_IN)) == THREADS * EACH
    assert ids_of(fresh, BIN) == BINS
    assert check_every_version(fresh) == 2 + 2 * THREADS * EACH
