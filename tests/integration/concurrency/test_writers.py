"""Many processes write one graph: nothing acknowledged is lost, doubled or seen in part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.examples import LONG
from tests.support.graphs import HOLDS, PART, ids, new_graph
from tests.support.stores import Store, new_root
from tests.support.writers import check_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.manifest.image import GraphCommit
    from tests.integration.concurrency.conftest import Start
    from tests.support.processes import Worker

SCALES = [
    pytest.param(Store.LOCAL, 4, 8, id="local"),
    pytest.param(
        Store.LOCAL, 6, 50, id="long", marks=pytest.mark.long("fewer writes show that they meet")
    ),
    pytest.param(Store.S3, 3, 4, id="s3"),
]
WAIT = 300  # a bound for hanging, not for being slow


@pytest.mark.parametrize(("store", "writers", "each"), SCALES)
def test_writers_of_one_branch(
    store: Store, writers: int, each: int, start: Start, request: pytest.FixtureRequest
) -> None:
    address = new_root(store, request)
    og = new_graph(address)
    # One of them also compacts, which takes fragments away under the others' feet.
    working = [
        start("write_pairs", address, "main", f"w{number}", each, 0 if number else each // 4)
        for number in range(writers)
    ]
    watching = [start("watch", address, "main") for _ in range(2 if LONG else 1)]
    go([*watching, *working])
    reports = [worker.wait(WAIT).result() for worker in working]
    for watcher in watching:
        watcher.send("stop")
    assert min(watcher.wait(WAIT).result() for watcher in watching) > 1, "they saw it change"

    assert sum(sum(report["refused"].values()) for report in reports) > 0, "they met"
    tokens, commit_ids = acknowledged(reports)
    assert len(tokens) == writers * each
    snapshot = og.snapshot()
    check_pairs(og, snapshot)
    assert ids(og, snapshot, PART) == ids(og, snapshot, HOLDS) == tokens
    commits = og.list_commits()
    check_chain(commits)
    assert [commit.manifest_version for commit in commits] == [*range(len(commits), 0, -1)]
    assert snapshot.manifest_version == len(commits)
    written = [commit.graph_commit_id for commit in commits if commit.operation == "commit"]
    assert sorted(written) == sorted(commit_ids)


@pytest.mark.parametrize(("store", "writers", "each"), SCALES)
def test_writers_of_their_own_branches(
    store: Store, writers: int, each: int, start: Start, request: pytest.FixtureRequest
) -> None:
    """They share tables, the commit log and nothing else: none is ever in another's way."""
    address = new_root(store, request)
    og = new_graph(address)
    names = [f"b{number}" for number in range(writers)]
    for name in names:
        og.branch_create(name)
    working = [start("write_pairs", address, name, name, each, each // 4) for name in names]
    go(working)
    reports = [worker.wait(WAIT).result() for worker in working]

    assert [report["refused"] for report in reports] == [{}] * writers
    for name, report in zip(names, reports, strict=True):
        fresh = Omnigraph.open(address)
        tokens, commit_ids = acknowledged([report])
        snapshot = fresh.snapshot(name)
        check_pairs(fresh, snapshot)
        assert ids(fresh, snapshot) == tokens
        commits = fresh.list_commits(name)
        check_chain(commits)
        own = [commit for commit in commits if commit.manifest_branch == name]
        assert [commit.manifest_version for commit in own] == [*range(len(own) + 1, 1, -1)]
        written = [commit.graph_commit_id for commit in own if commit.operation == "commit"]
        assert written == commit_ids[::-1]
    assert og.snapshot().manifest_version == 1
    assert ids(og, og.snapshot()) == []


def go(workers: Sequence[Worker]) -> None:
    """All at once: none begins before the slowest is ready."""
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")


def acknowledged(reports: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Tokens, sorted, and commit ids, in the order each writer was told of them."""
    pairs = [pair for report in reports for pair in report["acknowledged"]]
    return sorted(token for token, _ in pairs), [commit_id for _, commit_id in pairs]


def check_chain(commits: Sequence[GraphCommit]) -> None:
    """One line from the newest to the first: each commit's parent is the next, none is merged."""
    assert len({commit.graph_commit_id for commit in commits}) == len(commits)
    parents = [*(commit.graph_commit_id for commit in commits[1:]), None]
    assert [commit.parent_commit_id for commit in commits] == parents
    assert {commit.merged_parent_commit_id for commit in commits} == {None}
    assert commits[-1].operation == "init"
