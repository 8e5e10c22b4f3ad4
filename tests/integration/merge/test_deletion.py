"""A source that is to be deleted after its merge, while somebody writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import BranchNotFound
from omnigraph_core.failpoints import Failpoint
from omnigraph_core.history.snapshots import ReadTarget
from tests.integration.merge.small_graph import new_graph, part, put, rows
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """With a branch `side` that has p9."""
    made = new_graph(tmp_path / "graph")
    made.branch_create("side")
    put(made, "side", part("p9"))
    return made


@pytest.fixture
def at_point(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Does something, once, when a failpoint is reached."""

    def arrange(name: str, act: Callable[[], object]) -> None:
        def interfere(at: Failpoint) -> None:
            if at.name == name:
                monkeypatch.undo()
                act()

        monkeypatch.setattr(Failpoint, "hit", interfere)

    return arrange


@pytest.mark.parametrize("moment", ["merge.after_publish", "branch.after_deleted_mark"])
def test_what_is_committed_meanwhile_is_not_lost(
    og: Omnigraph, at_point: Callable[[str, Callable[[], object]], None], moment: str
) -> None:
    at_point(moment, lambda: put(og, "side", part("p10")))
    result = og.branch_merge("side", delete_branch=True)
    assert not result.is_source_deleted
    assert og.head_commit_id_for_branch("side") in (result.source_note or "")
    assert "p10" in rows(og, "side")
    clean_up(og, keep=1)
    assert og.branch_merge("side", delete_branch=True).is_source_deleted
    assert "p10" in rows(og, "main")
    assert og.branch_list() == ("main",)


def test_a_writer_that_comes_too_late_is_told(
    og: Omnigraph, at_point: Callable[[str, Callable[[], object]], None]
) -> None:
    """Its branch is there when it begins, and gone when its commit has landed."""

    def delete() -> None:
        assert og.branch_merge("side", delete_branch=True).is_source_deleted

    at_point("publish.before_image", delete)
    with pytest.raises(BranchNotFound):
        put(og, "side", part("p10"))
    assert "p9" in rows(og, "main")


def test_a_commit_that_nobody_was_told_of(
    og: Omnigraph, at_point: Callable[[str, Callable[[], object]], None]
) -> None:
    """It lands when the branch is as good as gone: it is told, and can be had back."""

    def write() -> None:
        with pytest.raises(BranchNotFound):
            put(og, "side", part("p10"))

    at_point("branch.after_delete", write)
    result = og.branch_merge("side", delete_branch=True)
    assert result.is_source_deleted
    assert result.source_note is not None
    commit_id = next(word for word in result.source_note.split() if len(word) == 26)
    assert commit_id != result.source_commit_id
    og.branch_create("kept", source=ReadTarget(snapshot_id=commit_id))
    assert "p10" in rows(og, "kept")
