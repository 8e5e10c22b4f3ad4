"""Indexes, embeddings, optimize, cleanup and verify."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from omnigraph_core import connect
from omnigraph_core.engine.indexing import IndexReport, IndexState
from omnigraph_core.engine.optimize import OptimizeReason, TableOptimizeStats
from omnigraph_core.errors import BranchNotFound, ConfigError, SnapshotNotFound
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.names import RUN_PREFIX
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.write.backfill import BackfillResult, EmbeddingStatus
from omnigraph_core.write.progress import Step
from tests.behaviour.stock import amounts, bin_, part, put
from tests.support.ageing import grow_old
from tests.support.server import serving
from tests.support.ways import NOT_ON_S3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.cleanup import BranchCleanup, CleanupReport
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.write.progress import Progress
    from tests.support.ways import Place

A_SECOND = timedelta(seconds=1)


def test_indexes(place: Place) -> None:
    graph = place.graph
    before = place.both(lambda graph: graph.index_status())
    assert {report.state for report in before} == {IndexState.PENDING}
    built = graph.ensure_indices()
    assert {(item.table_key, item.column, item.is_built) for item in built} >= {
        ("node:Part", "name", True), ("node:Part", "id", True),
    }  # fmt: skip
    after = place.both(lambda graph: graph.index_status())
    name = next(item for item in after if item.column == "name")
    assert name == IndexReport(
        "node:Part", name.name, "name", name.kind, IndexState.COMPLETE, 3, 3, 1,
        is_inherited=False, is_built=False,
    )  # fmt: skip
    put(graph, part("late"))
    partial = place.both(lambda graph: graph.index_status("main"))
    assert {item.state for item in partial if item.table_key == "node:Part"} >= {IndexState.PARTIAL}
    graph.branch_create("side")
    inherited = place.both(lambda graph: graph.index_status(ReadTarget(branch="side")))
    assert all(item.is_inherited for item in inherited)
    target = ReadTarget(snapshot_id=graph.list_commits()[1].graph_commit_id)
    old = place.both(lambda graph: graph.index_status(target))
    assert {item.rows for item in old if item.table_key == "node:Part"} == {3}
    place.both(lambda graph: graph.index_status(graph.snapshot_at_version(2)))
    assert isinstance(place.raised(lambda graph: graph.index_status("none")), BranchNotFound)
    place.raised(lambda graph: graph.ensure_indices(branch="none"))


def test_vectors_that_are_made_later(place: Place) -> None:
    graph = place.graph
    put(graph, part("new", note="one"), part("more", note="two"))
    (status,) = place.both(lambda graph: graph.embedding_status())
    assert status == EmbeddingStatus("Part", "meaning", status.model, 1, 2, 0)
    heard: list[Progress] = []
    done = graph.embed_backfill(progress=heard.append)
    assert done == BackfillResult("main", 2, (graph.head_commit_id_for_branch(),))
    assert heard[-1].step is Step.EMBEDDED
    assert heard[-1].rows == 2
    (status,) = place.both(lambda graph: graph.embedding_status(ReadTarget(branch="main")))
    assert (status.ready, status.pending) == (3, 0)
    old = ReadTarget(snapshot_id=graph.list_commits()[1].graph_commit_id)
    (status,) = place.both(lambda graph: graph.embedding_status(old))
    assert status.pending == 2
    again = place.both(lambda graph: graph.embed_backfill())
    assert again == BackfillResult("main", 0, ())
    vectors = place.both(
        lambda graph: graph.query(
            "main",
            "query q() { match { $p: Part } return { $p.sku, $p.meaning } order { $p.sku } }",
        )
    )
    assert sum(row["p.meaning"] is not None for row in vectors.to_pylist()) == 3
    place.raised(lambda graph: graph.embed_backfill(branch="none"))
    place.raised(lambda graph: graph.embedding_status("none"))


def test_optimize(place: Place) -> None:
    graph = place.graph
    for number in range(3):
        put(graph, bin_(f"x{number}"))
    before = amounts(graph)
    done = {item.table_key: item for item in graph.optimize()}
    bins = done["node:Bin"]
    assert bins == TableOptimizeStats(
        "node:Bin", 4, 1, bins.indexes_built, committed=True, reason=None
    )
    assert bins.indexes_built
    again = place.both(lambda graph: graph.optimize())
    assert {item.reason for item in again} == {OptimizeReason.NOTHING_TO_DO}
    graph.branch_create("side")
    inherited = place.both(lambda graph: graph.optimize(branch="side"))
    assert {item.reason for item in inherited} == {OptimizeReason.INHERITED}
    whole = place.both(lambda graph: graph.optimize(branch="side", include_inherited=True))
    assert {item.reason for item in whole} == {OptimizeReason.NOTHING_TO_DO}
    assert amounts(graph) == before
    place.raised(lambda graph: graph.optimize(branch="none"))


@pytest.fixture
def aged(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Place, Omnigraph]]:
    """Versions of main that are old enough to go, where leases are short.

    A server reads its settings from its own process: here from this one.
    """
    for number in range(1, 5):
        put(place.at_hand, part("nut", stock=number))
    assert amounts(place.graph)["nut"] == 4
    grow_old(A_SECOND)
    monkeypatch.setenv(PUBLISH_LEASE.name, "0.5")
    if not place.way.is_remote:
        yield place, place.graph
        return
    with serving(place.at_hand.uri) as server:
        graph = cast("Omnigraph", connect(server.url))
        with graph:
            yield place, graph


def kept(report: CleanupReport) -> tuple[BranchCleanup, ...]:
    """Without the branches on which a server keeps account of its own work."""
    return tuple(item for item in report.branches if not item.branch.startswith(RUN_PREFIX))


def test_cleanup(aged: tuple[Place, Omnigraph]) -> None:
    place, graph = aged
    preview = graph.cleanup(keep=2, grace=A_SECOND, is_preview=True)
    expected = place.at_hand.cleanup(keep=2, grace=A_SECOND, is_preview=True)
    assert preview == expected
    assert preview.is_preview
    assert (preview.old_versions_removed, preview.branches[0].versions_kept) == (4, 2)
    assert preview.bytes_removed > 0
    assert graph.snapshot_at_version(3).manifest_version == 3
    done = graph.cleanup(keep=2, grace=A_SECOND)
    assert not done.is_preview
    assert kept(done) == expected.branches
    assert done.tables == expected.tables
    with pytest.raises(SnapshotNotFound):
        graph.snapshot_at_version(3)
    assert amounts(graph) == {"bare": None, "bolt": 2**53 + 1, "nut": 4}
    nothing = graph.cleanup(older_than=timedelta(days=1), grace=A_SECOND, branches=["main"])
    assert nothing.old_versions_removed == 0
    again = place.at_hand.cleanup(older_than=timedelta(days=1), grace=A_SECOND, branches=["main"])
    assert (kept(nothing), nothing.tables) == (kept(again), again.tables)


@NOT_ON_S3
def test_cleanups_that_are_refused(shared: Place) -> None:
    for call, kind in (
        (lambda graph: graph.cleanup(), ConfigError),
        (lambda graph: graph.cleanup(keep=0), ConfigError),
        (lambda graph: graph.cleanup(keep=-1, is_preview=True), ConfigError),
        (lambda graph: graph.cleanup(older_than=timedelta(days=-1)), ConfigError),
        (lambda graph: graph.cleanup(keep=1, grace=A_SECOND), ConfigError),
        (lambda graph: graph.cleanup(keep=1, grace=timedelta(days=-1)), ConfigError),
        (lambda graph: graph.cleanup(keep=1, branches=["none"]), BranchNotFound),
    ):
        assert isinstance(shared.raised(call), kind)


def test_verify(place: Place) -> None:
    place.graph.branch_create("side")
    place.graph.tag_create("v1")
    shallow = place.both(lambda graph: graph.verify())
    assert shallow.is_sound
    assert (shallow.branch, shallow.is_deep) == (None, False)
    assert (shallow.checked.branches, shallow.checked.tags, shallow.checked.rows) == (2, 1, 0)
    one = place.both(lambda graph: graph.verify("side"))
    assert (one.branch, one.checked.branches) == ("side", 1)
    deep = place.graph.verify(is_deep=True)
    assert (deep.is_deep, deep.checked.rows >= 7, deep.require_sound()) == (True, True, deep)
    assert "sound" in deep.render()
    assert isinstance(place.raised(lambda graph: graph.verify("none")), BranchNotFound)
