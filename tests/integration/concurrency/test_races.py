"""Processes that want the same name at the same moment: one gets it, and the others are told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound
from omnigraph_core.failpoints import Failpoint, arm
from tests.support.examples import LONG
from tests.support.graphs import append_pair, content, ids, new_graph
from tests.support.writers import check_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.integration.concurrency.conftest import Start
    from tests.support.processes import Worker

ROUNDS = 4 if LONG else 2
EXISTS = "refused conflict.already_exists"
GONE = "refused not_found.branch"


def test_creators_of_one_branch(graph_root: str, start: Start) -> None:
    og = new_graph(graph_root)
    append_pair(og, ["p1"])
    racers = ready([start("take_orders", graph_root) for _ in range(4)])
    for number in range(ROUNDS):
        name = f"review/{number}"
        answers = race(racers, f"create {name}")
        assert answers.count(EXISTS) == len(racers) - 1
        [winner] = [answer for answer in answers if answer != EXISTS]
        assert winner == f"done {og.branch_get(name).incarnation}"
        assert ids(og, og.snapshot(name)) == ["p1"]
        append_pair(og, ["p2"], name)
        assert ids(og, og.snapshot(name)) == ["p1", "p2"]


@pytest.mark.parametrize("pause", ["sleep(0)", "sleep(100)"], ids=["quick", "together"])
def test_creators_of_one_graph(graph_root: str, start: Start, pause: str) -> None:
    """With a pause the slower ones catch up, and all reach the deciding write together."""
    env = {"OMNIGRAPH_FAILPOINTS": f"init.after_tables={pause}"}
    racers = ready([start("take_orders", graph_root, env=env) for _ in range(4)])
    for number in range(ROUNDS):
        answers = race(racers, f"init g{number}")
        assert answers.count(EXISTS) == len(racers) - 1
        [winner] = [answer for answer in answers if answer != EXISTS]
        og = Omnigraph.open(f"{graph_root}/g{number}")
        assert winner == f"done {og.head_commit_id_for_branch()}"
        assert content(og, og.snapshot()) == {"edge:Holds": [], "node:Bin": [], "node:Part": []}
        append_pair(og, ["p1"])
        check_pairs(og, og.snapshot())


def test_deleters_of_one_branch(graph_root: str, start: Start) -> None:
    """Both may have removed it: what counts is that nobody is told otherwise, and it is gone."""
    og = new_graph(graph_root)
    racers = ready([start("take_orders", graph_root) for _ in range(2)])
    for number in range(ROUNDS):
        name = f"review/{number}"
        og.branch_create(name)
        commit = append_pair(og, ["p1"], name)
        answers = race(racers, f"delete {name}")
        assert f"done {name}" in answers
        assert set(answers) <= {f"done {name}", GONE}
        assert og.branch_list() == ("main",)
        with pytest.raises(BranchNotFound):
            og.snapshot(name)
        assert og.get_commit(commit.graph_commit_id) == commit
        assert race(racers, f"create {name}").count(EXISTS) == 1, "the name is free again"
        assert ids(og, og.snapshot(name)) == []
        og.branch_delete(name)


@pytest.mark.parametrize("pause", ["sleep(0)", "sleep(150)"], ids=["quick", "slow"])
def test_a_writer_of_a_branch_that_is_deleted(tmp_path: Path, start: Start, pause: str) -> None:
    """Who is told that a commit is on a branch began it while the branch was there."""
    og = new_graph(str(tmp_path / "graph"))
    [writer] = ready([start("write_until_deleted", og.uri)])
    for number in range(ROUNDS):
        name = f"review/{number}"
        og.branch_create(name)
        writer.send(name)
        lines = [writer.next_line() for _ in range(3)]
        with arm("branch.after_deleted_mark", pause):
            og.branch_delete(name)
        returned = time.monotonic_ns()
        for line in writer.lines():
            if line == "gone":
                break
            lines.append(line)
        told = [line.split() for line in lines]
        assert max(int(begun) for begun, _ in told) < returned
        assert name not in og.branch_list()
        for _, commit_id in told:
            assert og.get_commit(commit_id).manifest_branch == name


@pytest.mark.parametrize("point", ["publish.before_image", "image.after_commit"])
@pytest.mark.parametrize("is_made_again", [False, True], ids=["gone", "made again"])
def test_a_branch_deleted_in_the_middle_of_a_commit(
    graph_root: str, point: str, is_made_again: bool
) -> None:
    """The commit may be in a catalog, but on no branch, and its writer is told so."""
    og, other = new_graph(graph_root), Omnigraph.open(graph_root)
    og.branch_create("review")
    append_pair(og, ["p1"], "review")

    def interfere(at: Failpoint) -> None:
        if at.name == point:
            patch.undo()
            other.branch_delete("review")
            if is_made_again:
                other.branch_create("review")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Failpoint, "hit", interfere)
        with pytest.raises(BranchNotFound):
            append_pair(og, ["p2"], "review")
    assert og.branch_list() == (("main", "review") if is_made_again else ("main",))
    for name in og.branch_list():
        assert ids(og, og.snapshot(name)) == []


def test_commits_are_found_while_another_process_records_them(tmp_path: Path, start: Start) -> None:
    """In the catalog before, in the log after, and never in neither."""
    og = new_graph(str(tmp_path / "graph"))
    [recorder] = ready([start("record", og.uri)])
    for number in range(40 if LONG else 15):
        commit = append_pair(og, [f"p{number}"])
        assert [og.get_commit(commit.graph_commit_id) for _ in range(3)] == [commit] * 3
    recorder.send("stop")
    recorder.wait().check()


def ready(workers: Sequence[Worker]) -> Sequence[Worker]:
    for worker in workers:
        assert worker.next_line() == "ready"
    return workers


def race(racers: Sequence[Worker], order: str) -> list[str]:
    for racer in racers:
        racer.send(order)
    return [racer.next_line() for racer in racers]
