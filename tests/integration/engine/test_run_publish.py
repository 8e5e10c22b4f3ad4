"""Publishing a run once: whoever is killed, comes twice or changes their mind meanwhile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine import runs
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, StorageError
from omnigraph_core.failpoints import arm
from omnigraph_core.history import refs
from omnigraph_core.history.runs import RunRecord, RunRegistry, RunStatus, mark_aborted
from omnigraph_core.storage.session import open_store
from tests.support.graphs import append_pair, ids, new_graph, touch
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(str(tmp_path / "graph"))


def begun(og: Omnigraph, *ids: str) -> RunRecord:
    run = og.begin_run(actor="ann")
    append_pair(og, ids or ["a"], run.run_branch)
    return run


def run_branches(og: Omnigraph) -> list[str]:
    names = refs.list_branch_names(open_store(og.uri), has_internal=True)
    return [name for name in names if name.startswith("__run__")]


def publishes(og: Omnigraph) -> list[str]:
    commits = og.list_commits()
    return [item.graph_commit_id for item in commits if item.operation == "run_publish"]


def publish(root: str, run_id: str) -> dict[str, object]:
    """In a worker."""
    og = Omnigraph.open(root)
    say("ready")
    hear()
    return og.publish_run(run_id).to_json()


def test_a_publisher_that_is_killed_after_the_merge(og: Omnigraph) -> None:
    run = begun(og)
    armed = {"OMNIGRAPH_FAILPOINTS": "run.after_merge=crash"}
    with spawn(f"{__name__}:publish", og.uri, run.run_id, env=armed) as worker:
        assert worker.next_line() == "ready"
        worker.send("go")
        assert worker.wait().returncode < 0
    (merged,) = publishes(og)
    assert og.get_run(run.run_id) == run, "the record says running still"
    append_pair(og, ["later"])
    published = og.publish_run(run.run_id)
    assert (published.status, published.published_snapshot_id) == (RunStatus.PUBLISHED, merged)
    assert publishes(og) == [merged]
    assert ids(og, og.snapshot()) == ["a", "later"]
    assert run_branches(og) == []


def interrupted(og: Omnigraph, run: RunRecord, point: str) -> str:
    """Publish up to a point; the commit it made."""
    with arm(point, "error"), pytest.raises(StorageError, match=point):
        og.publish_run(run.run_id)
    (merged,) = publishes(og)
    return merged


@pytest.mark.parametrize("end", ["abort_run", "fail_run"])
def test_what_is_visible_cannot_be_given_up(og: Omnigraph, end: str) -> None:
    run = begun(og)
    merged = interrupted(og, run, "run.after_merge")
    with pytest.raises(ConflictError, match="it is published"):
        getattr(og, end)(run.run_id)
    found = og.get_run(run.run_id)
    assert (found.status, found.published_snapshot_id) == (RunStatus.PUBLISHED, merged)
    assert run_branches(og) == []


def test_a_branch_that_stays_behind(og: Omnigraph) -> None:
    run = begun(og)
    merged = interrupted(og, run, "run.after_end")
    assert og.get_run(run.run_id).published_snapshot_id == merged
    assert run_branches(og) == [run.run_branch]
    assert og.publish_run(run.run_id).published_snapshot_id == merged
    assert og.branch_list() == ("main",)


def test_an_abort_that_comes_between_merge_and_record(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target decides: what is visible was published, whatever the record said for a moment."""
    run = begun(og)
    abort = partial(mark_aborted, now=run.updated_at)

    class AbortsHere:
        def hit(self) -> None:
            RunRegistry(open_store(og.uri)).transition(run.run_id, abort)

    monkeypatch.setattr(runs, "_MERGED", AbortsHere())
    published = og.publish_run(run.run_id)
    assert og.get_run(run.run_id) == published
    assert published.published_snapshot_id == og.head_commit_id_for_branch()


def test_work_that_came_to_the_target_with_another_branch(og: Omnigraph) -> None:
    run = begun(og)
    og.branch_create("kept", source=run.run_branch)
    append_pair(og, ["b"], "kept")
    og.branch_merge("kept")
    head = og.head_commit_id_for_branch()
    published = og.publish_run(run.run_id)
    assert (published.status, published.published_snapshot_id) == (RunStatus.PUBLISHED, head)
    assert og.head_commit_id_for_branch() == head


@pytest.mark.parametrize("kind", ["rows", "nothing changed"])
def test_of_several_processes_one_publishes(og: Omnigraph, kind: str) -> None:
    run = og.begin_run()
    if kind == "rows":
        append_pair(og, ["a"], run.run_branch)
    else:
        touch(og, branch=run.run_branch)
    touch(og)
    workers = [spawn(f"{__name__}:publish", og.uri, run.run_id) for _ in range(3)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    first, *others = [worker.wait(timeout=300).result() for worker in workers]
    assert others == [first, first]
    assert publishes(og) == [first["published_snapshot_id"]]
    assert og.get_run(run.run_id).to_json() == first
    assert run_branches(og) == []


def begin(root: str, operation_hash: str) -> str:
    """In a worker."""
    og = Omnigraph.open(root)
    say("ready")
    hear()
    return og.begin_run(operation_hash=operation_hash).run_id


def test_of_several_processes_one_begins(og: Omnigraph) -> None:
    workers = [spawn(f"{__name__}:begin", og.uri, "load-1") for _ in range(3)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    found = {worker.wait(timeout=300).result() for worker in workers}
    (run,) = og.list_runs()
    assert found == {run.run_id}
    assert run_branches(og) == [run.run_branch], "the branches of the others are gone again"
