"""How a write lands: once, on the state it means, and again if others were first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.constants import PREPARE_BUDGET
from omnigraph_core.errors import (
    BranchNotFound,
    ConflictError,
    ConstraintViolation,
    PreconditionFailed,
    PublishContention,
    StorageError,
    VersionConflict,
)
from omnigraph_core.failpoints import arm
from omnigraph_core.write.commit import Landed, Prepared, WriteOptions, commit_write
from tests.integration.write.appends import Appending, append, opened, part_ids
from tests.support.graphs import append_parts, new_graph, touch

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


@pytest.fixture
def other(root: str) -> Omnigraph:
    """Another process that writes to the same graph."""
    return new_graph(root)


@pytest.fixture
def context(root: str, other: Omnigraph) -> GraphContext:
    found = opened(root)
    found.head("main")
    return found


def land(prepare: Appending, *, if_commit: str | None = None, is_rerunnable: bool = True) -> Landed:
    options = WriteOptions(if_commit=if_commit, actor="ada")
    return commit_write(prepare.context, options, "change", prepare, is_rerunnable=is_rerunnable)


def head_of(context: GraphContext, branch: str = "main") -> str:
    return context.head(branch)[1].snapshot.commit.graph_commit_id


def test_what_landed(context: GraphContext, root: str) -> None:
    landed = land(Appending(context, ["a", "b"]))
    assert landed.commit is not None
    assert landed == Landed(landed.commit, {"rows": 2, "first": "a"})
    assert (landed.commit.actor_id, landed.commit.operation) == ("ada", "change")
    assert (landed.commit.idempotency_key, landed.commit.summary) == (None, None)
    assert opened(root).head("main")[1].snapshot.commit == landed.commit
    assert part_ids(root) == ["a", "b"]


def test_a_write_without_changes_writes_nothing(context: GraphContext) -> None:
    before = head_of(context)
    landed = land(Appending(context, []))
    assert landed == Landed(None, {"rows": 0})
    assert head_of(context) == before


def test_the_next_write_needs_no_look_at_the_head(context: GraphContext) -> None:
    first, second = Appending(context, ["a"]), Appending(context, ["b"])
    land(first)
    land(second)
    assert (first.asked, second.asked) == ([1], [2])


def test_commits_on_other_tables_do_not_matter(context: GraphContext, other: Omnigraph) -> None:
    prepare = Appending(context, ["a"], meanwhile=lambda: touch(other))
    assert land(prepare, is_rerunnable=False).commit is not None
    assert prepare.asked == [1]


def test_a_table_that_moved_is_prepared_again(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    names = iter("xy")
    prepare = Appending(
        context, ["a"], meanwhile=lambda: [append_parts(other, [id]) for id in [*names][:2]]
    )
    landed = land(prepare)
    assert landed.commit is not None
    assert prepare.asked == [1, 3]
    assert part_ids(root) == ["a", "x", "y"]


def test_a_write_whose_meaning_has_moved_is_not_prepared_again(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    prepare = Appending(context, ["a"], meanwhile=lambda: append_parts(other, ["x"]))
    with pytest.raises(VersionConflict):
        land(prepare, is_rerunnable=False)
    assert prepare.asked == [1]
    assert part_ids(root) == ["x"]


def test_it_starts_from_the_newest_state(context: GraphContext, other: Omnigraph) -> None:
    append_parts(other, ["x"])
    prepare = Appending(context, ["a"])
    land(prepare, is_rerunnable=False)
    assert prepare.asked == [2]


def test_others_that_are_always_first(context: GraphContext, other: Omnigraph, root: str) -> None:
    prepare = Appending(context, ["a"])
    prepare.meanwhile = lambda: append_parts(other, [f"x{len(prepare.asked)}"])
    with pytest.raises(VersionConflict):
        land(prepare)
    assert len(prepare.asked) == PREPARE_BUDGET.value + 1
    assert "a" not in part_ids(root)


def test_a_conflict_that_trying_again_cannot_mend(context: GraphContext) -> None:
    asked = []

    def prepare(state: CatalogState) -> Prepared:
        asked.append(state)
        raise ConflictError("no")

    with pytest.raises(ConflictError, match="no"):
        commit_write(context, WriteOptions(), "load", prepare, is_rerunnable=True)
    assert len(asked) == 1


def test_a_write_that_asks_for_a_head(context: GraphContext, root: str) -> None:
    first = head_of(context)
    landed = land(Appending(context, ["a"]), if_commit=first)
    assert landed.commit is not None
    assert landed.commit.parent_commit_id == first
    prepare = Appending(context, ["b"])
    with pytest.raises(PreconditionFailed, match="head is"):
        land(prepare, if_commit=first)
    assert prepare.asked == [], "it fails before anything is staged"
    assert part_ids(root) == ["a"]


def test_a_head_that_is_old_news_here(context: GraphContext, other: Omnigraph) -> None:
    known = head_of(context)
    newer = touch(other).graph_commit_id
    with pytest.raises(PreconditionFailed):
        land(Appending(context, ["a"]), if_commit=known)
    with pytest.raises(PreconditionFailed):
        land(Appending(context, []), if_commit=known)
    assert land(Appending(context, []), if_commit=newer).commit is None
    assert land(Appending(context, ["a"]), if_commit=newer).commit is not None


@pytest.mark.parametrize("is_rerunnable", [True, False])
def test_a_head_that_moves_meanwhile(
    context: GraphContext, other: Omnigraph, root: str, is_rerunnable: bool
) -> None:
    prepare = Appending(context, ["a"], meanwhile=lambda: touch(other))
    with pytest.raises(PreconditionFailed, match="head is"):
        land(prepare, if_commit=head_of(context), is_rerunnable=is_rerunnable)
    assert prepare.asked == [1], "not even one that could be prepared again"
    assert part_ids(root) == []


def only_beside_x(prepare: Appending) -> Appending:
    """Refuses a state that lacks the part `x`, as an edge without its end would be refused."""

    def check() -> None:
        entry = prepare.context.base("main")[1].snapshot.tables["node:Part"]
        if entry.row_count == 0:
            raise ConstraintViolation("src 'x' not found in Part")

    prepare.meanwhile = check
    return prepare


def test_an_old_state_may_not_refuse_a_write(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    with pytest.raises(ConstraintViolation):
        land(only_beside_x(Appending(context, ["a"])))
    append_parts(other, ["x"])
    prepare = only_beside_x(Appending(context, ["a"]))
    land(prepare)
    assert prepare.asked == [1, 2]
    assert part_ids(root) == ["a", "x"]


def test_a_refused_write_is_prepared_once_on_the_newest_state(context: GraphContext) -> None:
    prepare = only_beside_x(Appending(context, ["a"]))
    with pytest.raises(ConstraintViolation):
        land(prepare)
    assert prepare.asked == [1]


def test_an_old_state_may_not_say_there_is_nothing_to_do(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    append_parts(other, ["x"])
    given: dict[int, list[str]] = {1: [], 2: ["a"]}

    def prepare(state: CatalogState) -> Prepared:
        return Appending(context, given[state.snapshot.manifest_version])(state)

    landed = commit_write(context, WriteOptions(), "load", prepare, is_rerunnable=True)
    assert landed.summary == {"rows": 1, "first": "a"}
    assert part_ids(root) == ["a", "x"]


def test_a_branch_that_was_made_again(context: GraphContext, other: Omnigraph, root: str) -> None:
    other.branch_create("review")
    append(context, "a", branch="review")
    other.branch_delete("review")
    other.branch_create("review")
    assert append(context, "b", branch="review").commit is not None
    assert part_ids(root, "review") == ["b"]


def test_a_branch_that_is_gone(context: GraphContext, other: Omnigraph) -> None:
    other.branch_create("review")
    append(context, "a", branch="review")
    other.branch_delete("review")
    with pytest.raises(BranchNotFound):
        append(context, "b", branch="review")
    with pytest.raises(BranchNotFound):
        append(context, "b", branch="nowhere")


def test_a_failure_of_the_store_is_not_tried_again(context: GraphContext, root: str) -> None:
    prepare = Appending(context, ["a"])
    with arm("publish.after_image", "error"), pytest.raises(StorageError):
        land(prepare)
    assert prepare.asked == [1]
    assert part_ids(root) == ["a"], "it had landed: once more would have been once too often"
    assert land(Appending(context, ["b"])).commit is not None
    assert part_ids(root) == ["a", "b"]


def test_contention_is_prepared_again(context: GraphContext, root: str) -> None:
    left = iter([PublishContention("others were first")])

    def refuse_once() -> None:
        for problem in left:
            raise problem

    prepare = Appending(context, ["a"], meanwhile=refuse_once)
    assert land(prepare).commit is not None
    assert part_ids(root) == ["a"]
