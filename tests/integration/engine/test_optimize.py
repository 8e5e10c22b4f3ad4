"""Optimize beside writers: what moved is done again, a few times, and published with the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine import optimize as optimizing
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.optimize import OptimizeReason, computing_threads
from omnigraph_core.errors import StorageError
from omnigraph_core.failpoints import arm
from omnigraph_core.manifest.layout import GRAPH_COMMITS
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage.log import create_log, fold, open_log
from omnigraph_core.storage.session import open_store
from tests.integration.history.growing import SCHEMA, grown, numbers_in
from tests.support.damage import damages
from tests.support.graphs import (
    BIN,
    HOLDS,
    PART,
    append,
    append_pair,
    ids,
    new_graph,
)
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.segments import IndexRequest


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    og = new_graph(str(tmp_path / "graph"))
    for name in "abc":
        append_pair(og, [name])
    append(og, BIN, ["bin"])
    return og


class Meddler:
    """Writes to a table whenever it has just been worked on, so many times."""

    def __init__(self, writer: Omnigraph, key: str, times: int) -> None:
        self._writer, self._key, self._left = writer, key, times
        self._work = optimizing._optimize_table

    def __call__(
        self, context: GraphContext, entry: TableEntry, requests: Iterable[IndexRequest]
    ) -> object:
        done = self._work(context, entry, requests)
        if entry.table_key == self._key and self._left:
            self._left -= 1
            append(self._writer, self._key, [f"late {self._left}"])
        return done


def test_a_table_that_moves_meanwhile_is_done_again(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddler = Meddler(Omnigraph.open(og.uri), PART, 1)
    monkeypatch.setattr(optimizing, "_optimize_table", meddler)
    stats = {item.table_key: item for item in og.optimize()}
    assert all(stats[key].committed for key in (BIN, HOLDS, PART))
    assert (stats[PART].fragments_removed, stats[PART].fragments_added) == (4, 1)
    snapshot = og.snapshot()
    assert (snapshot.table(HOLDS).fragment_count, snapshot.table(PART).fragment_count) == (1, 1)
    assert ids(og, snapshot) == ["a", "b", "c", "late 0"]
    assert ids(og, snapshot, HOLDS) == ["a", "b", "c"]
    assert [commit.operation for commit in og.list_commits(limit=2)] == ["optimize", "commit"]
    assert {item.reason for item in og.optimize()} == {OptimizeReason.NOTHING_TO_DO}


@pytest.mark.parametrize(("times", "is_committed"), [(1, True), (2, True), (3, False), (9, False)])
def test_a_table_that_never_rests_is_left(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch, times: int, is_committed: bool
) -> None:
    meddler = Meddler(Omnigraph.open(og.uri), PART, times)
    monkeypatch.setattr(optimizing, "_optimize_table", meddler)
    stats = {item.table_key: item for item in og.optimize()}
    assert stats[PART].committed is is_committed
    assert stats[PART].reason is (None if is_committed else OptimizeReason.MOVED)
    assert stats[BIN].committed
    assert stats[HOLDS].committed, "the others do not wait"
    operations = [commit.operation for commit in og.list_commits()]
    assert operations.count("optimize") == 1
    assert len(ids(og, og.snapshot())) == 3 + min(times, 3)
    assert damages(og) == []


def test_what_another_has_optimized_meanwhile(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Omnigraph.open(og.uri)
    work = optimizing._optimize_tables

    def overtaken(context: GraphContext, snapshot: Snapshot, table_keys: Collection[str]) -> object:
        done = work(context, snapshot, table_keys)
        monkeypatch.setattr(optimizing, "_optimize_tables", work)
        other.optimize()
        return done

    monkeypatch.setattr(optimizing, "_optimize_tables", overtaken)
    stats = og.optimize()
    assert {item.reason for item in stats} == {OptimizeReason.NOTHING_TO_DO}
    assert [commit.operation for commit in og.list_commits(limit=2)] == ["optimize", "commit"]


def test_a_schema_that_changes_meanwhile(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Omnigraph.open(og.uri)
    work = optimizing._optimize_tables

    def overtaken(context: GraphContext, snapshot: Snapshot, table_keys: Collection[str]) -> object:
        done = work(context, snapshot, table_keys)
        monkeypatch.setattr(optimizing, "_optimize_tables", work)
        other.schema_apply(other.schema_show().source + "\nnode Batch { code: String @key }")
        return done

    monkeypatch.setattr(optimizing, "_optimize_tables", overtaken)
    assert all(item.committed for item in og.optimize())
    operations = [commit.operation for commit in og.list_commits(limit=2)]
    assert operations == ["optimize", "schema_apply"]


def test_a_damaged_log_is_not_in_the_way(og: Omnigraph, tmp_path: Path) -> None:
    og.list_commits()
    newest = min((tmp_path / "graph" / GRAPH_COMMITS / "_versions").glob("*.manifest"))
    newest.write_bytes(b"nonsense")
    assert all(item.committed for item in Omnigraph.open(og.uri).optimize())


def test_appenders_are_before_who_folds(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    log = create_log(store, "log", SCHEMA)
    for number in range(6):
        log = grown(log, number)
    with meanwhile(lambda: grown(log, 6), at="log.after_fold"):
        assert fold(store, "log") > 0, "it has tried again"
    folded = open_log(store, "log")
    assert folded is not None
    assert folded.count_fragments() <= 4
    assert numbers_in(folded) == list(range(7))
    assert fold(store, "log") == fold(store, "nothing there") == 0


def test_a_fold_that_fails_leaves_the_log(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    log = create_log(store, "log", SCHEMA)
    for number in range(6):
        log = grown(log, number)
    with arm("log.after_fold", "error"), pytest.raises(StorageError):
        fold(store, "log")
    assert numbers_in(grown(log, 6)) == list(range(7))


def test_concurrency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for text, at_once in (("", 4), ("3", 3), ("64", 4), ("0", 4)):
        monkeypatch.setenv(MAINTENANCE_CONCURRENCY.name, text)
        assert computing_threads() == at_once
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert computing_threads() == 2
