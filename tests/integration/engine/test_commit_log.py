"""The log of commits: a projection that can be lost, and never grows into many files."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import lance
import pytest

from omnigraph_core.constants import LOG_FLUSH_INTERVAL, MAX_LOG_FRAGMENTS
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.failpoints import arm
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS
from tests.support.graphs import append_parts, ids, new_graph, touch

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.manifest.image import GraphCommit


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(str(tmp_path))


def lose_log(root: Path) -> None:
    for name in (GRAPH_COMMITS, GRAPH_COMMIT_ACTORS):
        shutil.rmtree(root / name, ignore_errors=True)


def recorded(root: Path) -> list[str]:
    log = root / GRAPH_COMMITS
    if not log.exists():
        return []
    found: list[str] = lance.dataset(log).to_table()["graph_commit_id"].to_pylist()
    return found


def test_two_hundred_commits(og: Omnigraph, tmp_path: Path) -> None:
    made: list[GraphCommit] = list(og.list_commits())
    for number in range(205):
        made.append(touch(og))
        if number % 3 == 0:
            assert og.get_commit(made[-1].graph_commit_id) == made[-1]
        if number % 10 == 0:
            og.list_commits(limit=1)  # appends to the log each time
    assert og.list_commits() == tuple(reversed(made))
    log = lance.dataset(tmp_path / GRAPH_COMMITS)
    assert len(log.get_fragments()) <= MAX_LOG_FRAGMENTS.value
    assert recorded(tmp_path) == [commit.graph_commit_id for commit in made], "each once, in order"
    lose_log(tmp_path)
    again = Omnigraph.open(str(tmp_path))
    assert again.get_commit(made[3].graph_commit_id) == made[3]
    assert again.list_commits() == tuple(reversed(made))
    assert recorded(tmp_path) == [commit.graph_commit_id for commit in made]


def test_a_log_is_written_now_and_then(og: Omnigraph, tmp_path: Path) -> None:
    for _ in range(LOG_FLUSH_INTERVAL.value - 2):
        touch(og)
    assert recorded(tmp_path) == []
    touch(og)
    assert len(recorded(tmp_path)) == LOG_FLUSH_INTERVAL.value


def test_a_log_that_cannot_be_written_fails_no_commit(og: Omnigraph, tmp_path: Path) -> None:
    with arm("log.before_append", "error"):
        for _ in range(LOG_FLUSH_INTERVAL.value):
            made = touch(og)
    assert recorded(tmp_path) == []
    assert og.get_commit(made.graph_commit_id) == made
    assert len(og.list_commits()) == LOG_FLUSH_INTERVAL.value + 1 == len(recorded(tmp_path))


def test_a_log_lost_under_an_open_graph(og: Omnigraph, tmp_path: Path) -> None:
    made = [append_parts(og, [str(number)]) for number in range(3)]
    og.branch_create("review")
    listed = og.list_commits("review")
    lose_log(tmp_path)
    newest = append_parts(og, ["x"])
    assert og.get_commit(made[0].graph_commit_id) == made[0]
    assert og.list_commits("review") == listed
    assert og.list_commits()[0] == newest


def test_history_of_branches_after_the_log_is_lost(og: Omnigraph, tmp_path: Path) -> None:
    for number in range(70):
        touch(og)
        if number == 30:
            og.branch_create("one")
    append_parts(og, ["a"], "one")
    og.branch_create("two", source="one")
    made = append_parts(og, ["b"], "two")
    listed = {name: og.list_commits(name) for name in og.branch_list()}
    assert {name: len(found) for name, found in listed.items()} == {
        "main": 71,
        "one": 33,
        "two": 34,
    }
    lose_log(tmp_path)
    again = Omnigraph.open(str(tmp_path))
    assert {name: again.list_commits(name) for name in listed} == listed
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=made.created_at - 1)
    assert ids(again, again.snapshot_at_time(at, branch="two")) == ["a"]


def test_commits_of_deleted_branches_are_recorded_when_they_go(
    og: Omnigraph, tmp_path: Path
) -> None:
    og.branch_create("review")
    made = append_parts(og, ["a"], "review")
    assert recorded(tmp_path) == []
    og.branch_delete("review")
    assert made.graph_commit_id in recorded(tmp_path)
    again = Omnigraph.open(str(tmp_path))
    found = again.snapshot_of(ReadTarget(snapshot_id=made.graph_commit_id))
    assert ids(again, found) == ["a"]


def test_the_map_of_actors(og: Omnigraph, tmp_path: Path) -> None:
    touch(og)  # without an actor
    made = append_parts(og, ["a"])
    og.list_commits()
    actors = lance.dataset(tmp_path / GRAPH_COMMIT_ACTORS).to_table().to_pylist()
    genesis = og.list_commits()[-1]
    assert [(row["graph_commit_id"], row["actor_id"]) for row in actors] == [
        (genesis.graph_commit_id, "tester"),
        (made.graph_commit_id, "tester"),
    ]
