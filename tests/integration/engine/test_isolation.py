"""Snapshots beside writers: what was read once can be read again, whole and unchanged."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound
from omnigraph_core.manifest.retry import prepare_again
from tests.support.graphs import (
    HOLDS,
    PART,
    append_pair,
    append_parts,
    content,
    ids,
    new_graph,
)
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    og = new_graph(str(tmp_path))
    append_pair(og, ["a"])
    return og


def test_a_snapshot_held_for_a_hundred_commits(og: Omnigraph) -> None:
    held = og.snapshot()
    expected = content(og, held)
    writer = Omnigraph.open(og.uri)
    for number in range(100):
        append_parts(writer, [f"p{number:03d}"])
        if number % 40 == 39:
            writer.optimize()
    for handle in (og, writer, Omnigraph.open(og.uri)):
        assert content(handle, held) == expected
    assert len(ids(og, og.snapshot())) == 101
    assert og.snapshot().manifest_version == 104


def test_readers_never_see_half_a_commit(og: Omnigraph) -> None:
    """One handle shared by a writer and readers: every snapshot holds both rows of a pair."""
    done = threading.Event()

    def read() -> int:
        seen = 0
        while not done.is_set() or seen == 0:
            snapshot = og.snapshot()
            assert ids(og, snapshot) == ids(og, snapshot, HOLDS)
            assert snapshot.table(PART).row_count == len(ids(og, snapshot))
            assert snapshot.manifest_version >= seen
            seen = snapshot.manifest_version
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for number in range(25):
                append_pair(og, [f"p{number}"])
        finally:
            done.set()
        assert all(reader.result() > 1 for reader in readers)
    assert len(ids(og, og.snapshot())) == 26


def test_threads_write_to_one_handle(og: Omnigraph) -> None:
    """Appends are prepared again when they meet; all are kept, none twice."""

    def write(name: str) -> None:
        for number in range(6):
            append_retrying(og, f"{name}{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "wxyz"))
    expected = sorted(["a", *(f"{name}{number}" for name in "wxyz" for number in range(6))])
    assert ids(og, og.snapshot()) == ids(og, og.snapshot(), HOLDS) == expected
    lineage = og.list_commits()
    assert [commit.manifest_version for commit in lineage] == list(range(26, 0, -1))


def append_retrying(og: Omnigraph, id: str) -> None:
    prepare_again(lambda: append_pair(og, [id]), retries=1000)


def test_a_branch_that_goes_while_it_is_optimized(og: Omnigraph) -> None:
    og.branch_create("review")
    append_pair(og, ["b"], "review")
    writer = Omnigraph.open(og.uri)
    with (
        meanwhile(lambda: writer.branch_delete("review"), at="compact.after_rewrite"),
        pytest.raises(BranchNotFound),
    ):
        og.optimize(branch="review")
    assert ids(og, og.snapshot()) == ["a"]
