"""Many at once with the same idempotency keys: one commit for each key, one answer for all."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConflictError
from tests.integration.write.appends import append, opened, part_ids
from tests.support.graphs import new_graph
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.write.commit import Landed

THREADS = 8
KEYS = 6


@pytest.fixture
def root(tmp_path: Path) -> str:
    address = str(tmp_path / "graph")
    new_graph(address)
    return address


def commit_ids(root: str) -> list[str]:
    """The commits after the first one, which made the graph."""
    return [
        commit.graph_commit_id for commit in opened(root).head("main")[1].snapshot.image.commits
    ][1:]


@pytest.mark.parametrize("is_rerunnable", [True, False])
@pytest.mark.parametrize("is_shared", [True, False])
def test_threads_with_one_key(root: str, is_rerunnable: bool, is_shared: bool) -> None:
    shared = opened(root)
    shared.head("main")
    handles = [shared if is_shared else opened(root) for _ in range(THREADS)]
    start = threading.Barrier(THREADS, timeout=120)

    def send(number: int) -> Landed:
        start.wait()
        name = f"p{number}"  # whoever is first decides what is written
        return append(handles[number], name, key="k", digest="d", is_rerunnable=is_rerunnable)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(send, range(THREADS)))
    first = found[0]
    assert first.commit is not None
    assert all(item.commit == first.commit for item in found)
    assert all(item.summary == first.summary for item in found)
    assert [item.is_repeat for item in found].count(False) == 1
    assert commit_ids(root) == [first.commit.graph_commit_id]
    assert part_ids(root) == [first.summary["first"]]


def test_threads_that_write_one_table(root: str) -> None:
    """Each is in the others' way all the time, and each write lands all the same."""
    shared = opened(root)

    def send(thread: int) -> None:
        for number in range(4):
            append(shared, f"p{thread}-{number}")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(send, range(THREADS)))
    assert len(commit_ids(root)) == len(part_ids(root)) == 4 * THREADS


def send_keys(root: str, worker: int) -> list[list[object]]:
    """In a worker: every key once, in an order of its own, sent again when told to retry."""
    context = opened(root)
    context.head("main")
    say("ready")
    hear()
    order = [(number + worker) % KEYS for number in range(KEYS)]
    return [[number, *outcome(context, worker, number)] for number in order]


def outcome(context: GraphContext, worker: int, number: int) -> tuple[str, object]:
    while True:
        try:
            landed = append(context, f"p{number}-{worker}", key=f"k{number}")
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
            continue
        assert landed.commit is not None
        return landed.commit.graph_commit_id, landed.summary["first"]


def test_processes_with_the_same_keys(root: str) -> None:
    workers = [spawn(f"{__name__}:send_keys", root, number) for number in range(3)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    answers = [sorted(worker.wait().result()) for worker in workers]
    assert answers[0] == answers[1] == answers[2]
    numbers, commits, names = zip(*answers[0], strict=True)
    assert list(numbers) == list(range(KEYS))
    assert sorted(commits) == sorted(commit_ids(root))
    assert sorted(names) == part_ids(root)
