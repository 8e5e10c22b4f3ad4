"""Reads beside writers: what a query finds is its snapshot, whole and unchanged, to its last row.

A query is caught between two of its portions, and while it waits another process commits, compacts,
cleans up and deletes branches.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound, SnapshotNotFound
from omnigraph_core.exec.guard import Cancellation
from tests.support.ageing import grow_old
from tests.support.examples import LONG
from tests.support.read_rivals import LAW, STEP, Rival, begin, commit, law_after

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.manifest.snapshot import Snapshot

PAIRS = """
query pairs() {
  match { $b holds $p  $b holds $q  $p.stock = $q.stock  $p.name < $q.name }
  return { $p.sku, $q.sku, $p.stock }
  order { $p.sku, $q.sku }
}
"""
BEGUN = 4
"""Commits before the test."""


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """A graph nothing of which is in memory."""
    og = begin(str(tmp_path / "graph"))
    for number in range(2, BEGUN + 1):
        commit(og, number)
    og.branch_create("review")
    return Omnigraph.open(og.uri)


@pytest.fixture
def rival(og: Omnigraph) -> Iterator[Rival]:
    with Rival(og.uri) as rival:
        yield rival


class Caught(Cancellation):
    """Lets something happen when a query asks for the n-th time whether to go on."""

    def __init__(self, at: int, act: Callable[[], object]) -> None:
        super().__init__()
        self.asked = 0
        self._at = at
        self._act = act

    @property
    def is_cancelled(self) -> bool:
        self.asked += 1
        if self.asked == self._at:
            self._act()
        return False


def pairs_after(number: int) -> list[dict[str, Any]]:
    skus = [f"p{part:05}" for part in range(number * STEP)]
    return [
        {"p.sku": one, "q.sku": other, "p.stock": number}
        for one in skus
        for other in skus
        if one < other
    ]


def law(og: Omnigraph, target: str | ReadTarget | Snapshot) -> dict[str, Any]:
    (row,) = og.query(target, LAW).to_pylist()
    return row


def upheaval(rival: Rival) -> None:
    """Everything that may happen to a graph in a while."""
    rival.do("commit", BEGUN + 1)
    rival.do("optimize")
    rival.do("commit", BEGUN + 2)
    rival.do("branch_delete", "review")
    rival.do("cleanup")


@pytest.mark.parametrize(
    ("target", "at"),
    [
        *(("main", 1), ("review", 2), ("main", 4), ("review", 6)),
        *(
            pytest.param(target, at, marks=pytest.mark.long("each moment is met on one branch"))
            for target, at in (("review", 1), ("main", 2), ("review", 4), ("main", 6))
        ),
    ],
)
def test_a_running_query_keeps_its_snapshot(
    og: Omnigraph, rival: Rival, target: str, at: int
) -> None:
    caught = Caught(at, lambda: upheaval(rival))
    result = og.query(target, PAIRS, cancellation=caught)
    assert caught.asked >= at
    assert result.to_pylist() == pairs_after(BEGUN)
    assert law(og, result.snapshot) == law_after(BEGUN)
    assert law(og, "main") == law_after(BEGUN + 2)
    with pytest.raises(BranchNotFound):
        og.query("review", LAW)


@pytest.mark.parametrize("at", [1, 3])
def test_a_held_snapshot_outlives_every_cleanup(og: Omnigraph, rival: Rival, at: int) -> None:
    """Its files are old, and of no use to anybody else."""
    snapshot = og.snapshot()

    def clean_up_around_it() -> None:
        upheaval(rival)
        grow_old(timedelta(seconds=0.1))
        rival.do("cleanup", 0.1)

    with og.hold(snapshot, purpose="test", lasting=timedelta(hours=1)):
        caught = Caught(at, clean_up_around_it)
        assert og.query(snapshot, PAIRS, cancellation=caught).to_pylist() == pairs_after(BEGUN)
        assert caught.asked >= at
        assert law(Omnigraph.open(og.uri), snapshot) == law_after(BEGUN)
    with pytest.raises(SnapshotNotFound):
        og.run_query_at(snapshot.manifest_version - 1, LAW)


def test_a_snapshot_gives_the_same_rows_before_and_after(og: Omnigraph, rival: Rival) -> None:
    snapshots = [og.snapshot_at_version(version) for version in range(2, BEGUN + 2)]
    before = [og.query(snapshot, PAIRS).to_arrow() for snapshot in snapshots]
    assert [rows.num_rows for rows in before] == [
        len(pairs_after(number)) for number in range(1, BEGUN + 1)
    ]
    upheaval(rival)
    for handle in (og, Omnigraph.open(og.uri)):
        after = [handle.query(snapshot, PAIRS).to_arrow() for snapshot in snapshots]
        assert after == before


def test_threads_share_one_handle_and_one_cache(og: Omnigraph) -> None:
    """Each result is right for the snapshot it names, whatever the others have in the cache."""
    first, last = og.snapshot().manifest_version, BEGUN + (8 if LONG else 4)
    done = threading.Event()

    def read(kind: int) -> int:
        newest = 0
        while not done.is_set() or not newest:
            if kind == 0:
                snapshot = og.snapshot_at_version(first)
                assert law(og, snapshot) == law_after(BEGUN)
                newest = max(newest, 1)
                continue
            result = og.query("main", LAW, max_age=0.01 if kind == 1 else None)
            number = BEGUN + result.snapshot.manifest_version - first
            assert result.to_pylist() == [law_after(number)]
            assert number >= newest
            newest = number
        return newest

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, kind) for kind in (0, 1, 2, 2)]
        try:
            for number in range(BEGUN + 1, last + 1):
                commit(og, number)
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
    assert law(og, "main") == law_after(last)


def test_threads_that_begin_cold_build_things_once_and_right(og: Omnigraph) -> None:
    start = threading.Barrier(6, timeout=120)

    def read(_: int) -> list[dict[str, Any]]:
        start.wait()
        return og.query("main", PAIRS).to_pylist()

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(read, range(6)))
    assert found == [pairs_after(BEGUN)] * 6


def test_a_reader_beside_another_process_sees_whole_commits(og: Omnigraph, rival: Rival) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: [rival.do("commit", BEGUN + n) for n in range(1, 8)])
        seen: list[dict[str, Any]] = []
        while not running.done():
            seen.append(law(og, "main"))
        running.result()
    seen.append(law(og, "main"))
    known = [law_after(BEGUN + number) for number in range(8)]
    assert all(found in known for found in seen)
    assert seen == sorted(seen, key=known.index)
    assert seen[-1] == known[-1]


def test_a_branch_that_moves_while_it_is_read(og: Omnigraph) -> None:
    caught = Caught(2, lambda: commit(og, BEGUN + 1, "review"))
    assert og.query("review", PAIRS, cancellation=caught).to_pylist() == pairs_after(BEGUN)
    assert law(og, "review") == law_after(BEGUN + 1)
    assert law(og, "main") == law_after(BEGUN)
