"""The change feed: whole blocks in order, cursors that fit one reader, and gaps that are told."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff import line, rows
from omnigraph_core.diff.model import ChangeFilter, ChangeOp
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ChangeFeedGap,
    CommitNotFound,
    ConfigError,
    CursorRejected,
    ObjectNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget, state_at
from tests.integration.diff.conftest import load, part
from tests.support.ageing import clean_up
from tests.support.graphs import BIN, PART, append, new_graph, touch

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.diff.model import ChangePage
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.storage.session import Store


def told(page: ChangePage) -> list[list[str]]:
    """Per block the changes, as `+a ~b -c`."""
    signs = {"insert": "+", "update": "~", "delete": "-"}
    return [
        [f"{signs[change.op]}{change.id}" for change in block.changes.changes]
        for block in page.blocks
    ]


def commits(page: ChangePage) -> list[str]:
    return [block.commit.graph_commit_id for block in page.blocks]


def head(og: Omnigraph, branch: str = "main") -> str:
    return og.head_commit_id_for_branch(branch)


def test_from_now_on(og: Omnigraph) -> None:
    load(og, part("a"))
    page = og.poll()
    assert (page.blocks, page.is_caught_up) == ((), True)
    assert og.poll(page.cursor) == page
    first = load(og, part("b"), part("c"))
    second = load(og, part("b", stock=1))
    page = og.poll(page.cursor)
    assert told(page) == [["+b", "+c"], ["~b"]]
    assert (commits(page), page.is_caught_up) == ([first, second], True)
    assert og.poll(page.cursor).blocks == ()
    assert page.cursor == og.cursor_at()
    (change,) = page.blocks[1].changes.changes
    assert (change.properties, change.manifest_version) == (("stock",), 4)
    changes = page.blocks[1].changes
    assert (changes.from_commit_id, changes.to_commit_id, changes.branch) == (first, second, "main")


def test_a_cursor_works_for_everybody_and_in_an_address(og: Omnigraph) -> None:
    cursor = og.cursor_at()
    load(og, part("a"))
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    other = Omnigraph.open(og.uri)
    assert told(other.poll(cursor)) == told(og.poll(cursor)) == [["+a"]]


def test_a_baseline(og: Omnigraph) -> None:
    """Read a commit as a whole, then follow: together that is everything."""
    load(og, part("a"))
    middle = load(og, part("b"))
    load(og, part("c"))
    known = set(
        og.table(og.snapshot_of(ReadTarget(snapshot_id=middle)), PART).read()["id"].to_pylist()
    )
    page = og.poll(og.cursor_at(middle))
    known |= {change.id for block in page.blocks for change in block.changes.changes}
    assert known == {"a", "b", "c"}
    assert told(og.poll(og.cursor_at(og.list_commits()[-1].graph_commit_id))) == [
        ["+a"],
        ["+b"],
        ["+c"],
    ]


def test_pages(og: Omnigraph) -> None:
    cursor = og.cursor_at()
    sizes = [1, 2, 5, 1, 1]
    for number, size in enumerate(sizes):
        load(og, *(part(f"{number}-{at}") for at in range(size)))

    def pages(**bounds: int) -> list[list[int]]:
        at, found = cursor, []
        while True:
            page = og.poll(at, **bounds)
            assert page.is_caught_up == (page.cursor == og.cursor_at())
            found.append([len(block) for block in told(page)])
            if page.is_caught_up:
                return found
            assert page.cursor != at
            at = page.cursor

    assert pages() == [[1, 2, 5, 1, 1]]
    assert pages(most_commits=2) == [[1, 2], [5, 1], [1]]
    assert pages(most_commits=1) == [[1], [2], [5], [1], [1]]
    assert pages(most_changes=3) == [[1, 2], [5], [1, 1]]
    assert pages(most_changes=1) == [[1], [2], [5], [1], [1]]
    assert pages(most_changes=6) == [[1, 2], [5, 1], [1]]
    for name in ("most_commits", "most_changes"):
        with pytest.raises(ConfigError, match=f"`{name}` is 0"):
            og.poll(cursor, **{name: 0})


def test_commits_without_changes_are_passed(og: Omnigraph) -> None:
    load(og, part("a"))
    cursor = og.cursor_at()
    og.ensure_indices()
    touch(og)
    load(og, part("a"))  # the row it has
    page = og.poll(cursor)
    assert (page.blocks, page.cursor) == ((), og.cursor_at())
    wanted = ChangeFilter(type_names=frozenset({"Bin"}))
    narrow = og.cursor_at(filter=wanted)
    load(og, part("b"))
    append(og, BIN, ["x"])
    load(og, part("c"))
    page = og.poll(narrow, filter=wanted)
    assert (told(page), page.cursor) == ([["+x"]], og.cursor_at(filter=wanted))


def test_rewrites_are_passed_without_comparing(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(og, part("a"))
    load(og, part("b"))
    cursor = og.cursor_at()
    og.ensure_indices()
    og.optimize()
    touch(og, PART)

    def refuse(*_: object) -> None:
        pytest.fail("nothing has to be compared")

    monkeypatch.setattr(rows, "changed_rows", refuse)
    assert og.poll(cursor).blocks == ()


def test_no_cost_of_what_came_before(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the history is, only the versions after the cursor are read, and its own."""
    for number in range(20):
        touch(og)
        if number == 16:
            cursor = og.cursor_at()
    loaded: list[int] = []

    def counted(store: Store, branch: str, incarnation: str, version: int) -> CatalogState:
        loaded.append(version)
        return state_at(store, branch, incarnation, version)

    monkeypatch.setattr(line, "state_at", counted)
    other = Omnigraph.open(og.uri)
    assert other.poll(cursor).is_caught_up
    assert loaded == [18, 19, 20], "the head, 21, is known"
    other.poll(other.cursor_at())
    assert len(loaded) == 3


def test_filters(og: Omnigraph) -> None:
    wanted = ChangeFilter(ops=frozenset({ChangeOp.DELETE}))
    cursor = og.cursor_at(filter=wanted)
    load(og, part("a"), part("b"))
    og.mutate('query gone() { delete Part where sku = "a" }')
    page = og.poll(cursor, filter=wanted)
    assert told(page) == [["-a"]]
    assert page.blocks[0].changes.stats.inserts == 0
    same = ChangeFilter(frozenset(), frozenset(), frozenset({ChangeOp.DELETE}))
    assert told(og.poll(cursor, filter=same)) == [["-a"]]
    bare = og.poll(cursor, filter=wanted, has_values=False)
    assert bare.blocks[0].changes.changes[0].before is None


def test_a_branch_and_what_it_was_forked_from(og: Omnigraph) -> None:
    first = load(og, part("a"))
    second = load(og, part("b"))
    og.branch_create("review")
    assert og.poll(og.cursor_at(branch="review"), branch="review").blocks == ()
    load(og, part("m"))
    load(og, part("r"), branch="review")
    og.branch_create("nested", source="review")
    og.branch_create("deep", source="nested")
    load(og, part("d"), branch="deep")
    assert told(og.poll(og.cursor_at(first, branch="deep"), branch="deep")) == [
        ["+b"],
        ["+r"],
        ["+d"],
    ]
    assert told(og.poll(og.cursor_at(second, branch="deep"), branch="deep")) == [["+r"], ["+d"]]
    assert told(og.poll(og.cursor_at(second, branch="review"), branch="review")) == [["+r"]]
    with pytest.raises(ConfigError, match="not on the line of first parents of `review`"):
        og.cursor_at(head(og), branch="review")
    with pytest.raises(ConfigError, match="made on `deep`"):
        og.cursor_at(head(og, "deep"))


def test_a_cursor_of_before_the_first_commit_of_a_branch(og: Omnigraph) -> None:
    load(og, part("a"))
    og.branch_create("review")
    cursor = og.cursor_at(branch="review")
    load(og, part("b"), branch="review")
    page = og.poll(cursor, branch="review")
    assert (told(page), page.blocks[0].changes.branch) == ([["+b"]], "review")


def test_a_fork_stays_readable_when_its_source_is_cleaned(og: Omnigraph) -> None:
    load(og, part("a"))
    og.branch_create("review")
    cursor = og.cursor_at(branch="review")
    load(og, part("b"), branch="review")
    for name in ("c", "d"):
        load(og, part(name))
    clean_up(og, keep=1)
    assert told(og.poll(cursor, branch="review")) == [["+b"]]


def test_cursors_that_do_not_fit(og: Omnigraph, tmp_path: Path) -> None:
    load(og, part("a"))
    cursor = og.cursor_at()
    og.branch_create("review")
    damaged = cursor[:-4] + ("AAAA" if cursor[-4:] != "AAAA" else "BBBB")
    for text, given in (("damaged", damaged), ("no cursor", "what?"), ("empty", "")):
        with pytest.raises(CursorRejected, match=f"the cursor is {text}"):
            og.poll(given)
    with pytest.raises(CursorRejected, match="of the branch `main`"):
        og.poll(cursor, branch="review")
    with pytest.raises(CursorRejected, match="another filter"):
        og.poll(cursor, filter=ChangeFilter(type_names=frozenset({"Part"})))
    other = new_graph(str(tmp_path / "other"))
    with pytest.raises(CursorRejected, match="another graph"):
        other.poll(cursor)
    with pytest.raises(BranchNotFound):
        og.poll(cursor, branch="nowhere")
    with pytest.raises(CommitNotFound):
        og.cursor_at("nope")


def test_a_branch_of_the_same_name_is_another_one(og: Omnigraph) -> None:
    og.branch_create("review")
    cursor = og.cursor_at(branch="review")
    og.branch_delete("review")
    og.branch_create("review")
    load(og, part("a"), branch="review")
    with pytest.raises(CursorRejected, match="earlier branch `review`"):
        og.poll(cursor, branch="review")


def test_an_older_copy_of_the_graph(og: Omnigraph, tmp_path: Path) -> None:
    load(og, part("a"))
    shutil.copytree(og.uri.removeprefix("file://"), tmp_path / "copy")
    load(og, part("b"))
    cursor = og.cursor_at()
    restored = Omnigraph.open(str(tmp_path / "copy"))
    with pytest.raises(CursorRejected, match="no longer has"):
        restored.poll(cursor)
    load(restored, part("c"))
    load(restored, part("d"))
    with pytest.raises(CursorRejected, match="no longer has"):
        restored.poll(cursor)


def test_a_gap(og: Omnigraph) -> None:
    cursor = og.cursor_at()
    for name in "abcd":
        load(og, part(name))
    clean_up(og, keep=2)
    with pytest.raises(ChangeFeedGap) as caught:
        og.poll(cursor)
    resume = caught.value.resume_commit_id
    assert resume == og.list_commits()[1].graph_commit_id
    assert caught.value.details() == {"resume_commit_id": resume}
    assert resume in str(caught.value.hint)
    assert og.table(og.snapshot_of(ReadTarget(snapshot_id=resume)), PART).count_rows() == 3
    assert told(og.poll(og.cursor_at(resume))) == [["+d"]]
    assert og.poll(og.cursor_at()).is_caught_up


def test_what_comes_before_a_gap_is_given(og: Omnigraph) -> None:
    """A tag keeps one version in the middle; the versions around it are gone."""
    made = [load(og, part(name)) for name in "abcdefg"]
    for at in (1, 2, 4):
        og.tag_create(f"t{at}", ReadTarget(snapshot_id=made[at]))
    clean_up(og, keep=1)
    page = og.poll(og.cursor_at(made[1]))
    assert (told(page), page.is_caught_up) == ([["+c"]], False)
    with pytest.raises(ChangeFeedGap) as caught:
        og.poll(page.cursor)
    assert caught.value.resume_commit_id == made[4]
    with pytest.raises(ChangeFeedGap) as caught:
        og.poll(og.cursor_at(made[4]))
    assert caught.value.resume_commit_id == made[6]


def test_a_gap_in_the_source_of_a_branch(og: Omnigraph) -> None:
    made = [load(og, part(name)) for name in "abc"]
    og.branch_create("review")
    load(og, part("r"), branch="review")
    load(og, part("m"))
    clean_up(og, keep=1)
    with pytest.raises(ChangeFeedGap) as caught:
        og.poll(og.cursor_at(made[0], branch="review"), branch="review")
    assert caught.value.resume_commit_id == made[2]
    resumed = og.cursor_at(made[2], branch="review")
    assert told(og.poll(resumed, branch="review")) == [["+r"]]


def test_a_lost_file_is_no_gap(og: Omnigraph) -> None:
    """Damage is told as it is: reading from elsewhere would hide it."""
    load(og, part("a"))
    cursor = og.cursor_at()
    load(og, part("b"))
    root = og.uri.removeprefix("file://")
    shutil.rmtree(f"{root}/{og.snapshot().table(PART).location}/data")
    with pytest.raises(ObjectNotFound):
        Omnigraph.open(og.uri).poll(cursor)


def test_a_filter_of_a_type_that_is_not_there(og: Omnigraph) -> None:
    wanted = ChangeFilter(type_names=frozenset({"Brt"}))
    with pytest.raises(ConfigError, match="no type `Brt`"):
        og.poll(filter=wanted)


def test_a_merge_is_one_block(og: Omnigraph) -> None:
    """What it changed on the branch, whatever the commits of the other one did in between."""
    load(og, part("a", stock=1), part("b"))
    og.branch_create("review")
    load(og, part("c"), part("d"), branch="review")
    og.mutate('query gone() { delete Part where sku = "d" }', branch="review")
    cursor = og.cursor_at()
    load(og, part("a", stock=2))
    og.branch_merge("review")
    page = og.poll(cursor)
    assert told(page) == [["~a"], ["+c"]]
    assert page.blocks[1].commit.merged_parent_commit_id == head(og, "review")
    assert commits(page)[1] == head(og)
    merged = og.commit_changes(head(og))
    assert [change.id for change in merged.changes] == ["c"]
    assert [change.id for change in og.diff_between("review", "main").changes] == ["a"]


def test_a_fast_forward_is_one_block(og: Omnigraph) -> None:
    load(og, part("a"))
    og.branch_create("review")
    load(og, part("b"), branch="review")
    load(og, part("c"), branch="review")
    cursor = og.cursor_at()
    og.branch_merge("review")
    assert told(og.poll(cursor)) == [["+b", "+c"]]
    assert og.diff_between("review", "main").changes == ()


def test_what_is_taken_back_is_a_block_of_its_own(og: Omnigraph) -> None:
    load(og, part("a", stock=1))
    cursor = og.cursor_at()
    wrong = load(og, part("a", stock=2), part("b"))
    load(og, part("c"))
    og.revert(wrong)
    assert told(og.poll(cursor)) == [["~a", "+b"], ["+c"], ["~a", "-b"]]
    og.branch_reset("main", wrong, confirm=True)
    assert told(og.poll(cursor))[3:] == [["~a", "+b", "-c"]]
    assert og.diff_between(ReadTarget(snapshot_id=wrong), "main").changes == ()
