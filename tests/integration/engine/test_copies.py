"""A graph is a directory: a copy of it, or the same one moved, is the same graph."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.storage.indexes import index_coverage
from omnigraph_core.storage.objects import list_objects, put
from omnigraph_core.storage.session import open_store
from tests.support.ageing import clean_up
from tests.support.graphs import PART, append_pair, append_parts, content, ids, new_graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def make_history(address: str) -> dict[str, str]:
    """Branches, one of them deleted, tags, indexes, a run; the ids of its commits by name."""
    og = new_graph(address)
    append_pair(og, ["a"])
    og.optimize()
    og.tag_create("v1")
    og.branch_create("one")
    append_pair(og, ["b"], "one")
    og.branch_create("one/two", source="one")
    append_pair(og, ["c"], "one/two")
    og.optimize(branch="one/two")
    og.branch_create("gone")
    gone = append_parts(og, ["d"], "gone")
    og.branch_delete("gone")
    append_pair(og, ["e"])
    run = og.begin_run("one", operation_hash="load")
    append_parts(og, ["f"], run.run_branch)
    return {"gone": gone.graph_commit_id, "run": run.run_id}


def picture(og: Omnigraph, known: dict[str, str]) -> dict[str, object]:
    """Everything one can see of a graph."""
    branches = {
        (name, version): content(og, og.snapshot_at_version(version, branch=name))
        for name in og.branch_list()
        for version in range(1, og.snapshot(name).manifest_version + 1)
    }
    gone = og.snapshot_of(ReadTarget(snapshot_id=known["gone"]))
    run = og.get_run(known["run"])
    return {
        "branches": branches,
        "commits": {name: og.list_commits(name) for name in og.branch_list()},
        "tags": [
            (tag, content(og, og.snapshot_of(ReadTarget(tag=tag.tag)))) for tag in og.tag_list()
        ],
        "gone": content(og, gone),
        "run": (run, content(og, og.snapshot(run.run_branch))),
        "indexes": index_coverage(og.table(og.snapshot("one/two"), PART)),
    }


def use(og: Omnigraph, known: dict[str, str]) -> None:
    """Everything one can do with a graph."""
    append_pair(og, ["x"], "one/two")
    assert ids(og, og.snapshot("one/two")) == ["a", "b", "c", "x"]
    og.branch_create("back", source=ReadTarget(snapshot_id=known["gone"]))
    assert ids(og, og.snapshot("back")) == ["a", "d"]
    og.optimize(branch="one/two")
    assert og.begin_run("one", operation_hash="load").run_id == known["run"]
    og.abort_run(known["run"])
    clean_up(og, keep=1)
    assert ids(og, og.snapshot_of(ReadTarget(tag="v1"))) == ["a"]
    assert ids(og, og.snapshot()) == ["a", "e"]


def copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


def move(source: Path, target: Path) -> None:
    shutil.move(source, target)


@pytest.mark.parametrize("take", [copy, move])
def test_a_graph_taken_elsewhere(tmp_path: Path, take: Callable[[Path, Path], None]) -> None:
    known = make_history(str(tmp_path / "here"))
    before = picture(Omnigraph.open(str(tmp_path / "here")), known)
    (tmp_path / "other ü").mkdir()
    take(tmp_path / "here", tmp_path / "other ü" / "there")
    there = Omnigraph.open(str(tmp_path / "other ü" / "there"))
    assert picture(there, known) == before
    use(there, known)
    if take is copy:
        assert picture(Omnigraph.open(str(tmp_path / "here")), known) == before


def test_a_copy_and_its_original_go_their_own_ways(tmp_path: Path) -> None:
    og = new_graph(str(tmp_path / "one"))
    append_pair(og, ["a"])
    copy(tmp_path / "one", tmp_path / "two")
    other = Omnigraph.open(str(tmp_path / "two"))
    append_pair(og, ["b"])
    append_pair(other, ["c"])
    assert (ids(og, og.snapshot()), ids(other, other.snapshot())) == (["a", "b"], ["a", "c"])
    shutil.rmtree(tmp_path / "one")
    assert ids(other, other.snapshot()) == ["a", "c"]


def test_from_a_disk_to_a_bucket_and_back(tmp_path: Path, s3_root: str) -> None:
    known = make_history(str(tmp_path / "here"))
    before = picture(Omnigraph.open(str(tmp_path / "here")), known)
    bucket = open_store(s3_root)
    for file in (tmp_path / "here").rglob("*"):
        if file.is_file():
            put(bucket, str(file.relative_to(tmp_path / "here")), file.read_bytes())
    there = Omnigraph.open(s3_root)
    assert picture(there, known) == before
    use(there, known)
    assert len(list_objects(bucket, "__manifest")) > 0
