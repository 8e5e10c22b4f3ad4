"""A request with an idempotency key lands once, however often and from wherever it is sent."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.constants import LOG_FLUSH_INTERVAL, RECENT_COMMITS
from omnigraph_core.errors import (
    CommitOutcomeUnknown,
    ConfigError,
    ConflictError,
    ErrorKind,
    InvariantBroken,
    PreconditionFailed,
    StorageError,
    VersionConflict,
)
from omnigraph_core.failpoints import arm
from omnigraph_core.history import door
from omnigraph_core.manifest.layout import GRAPH_COMMITS
from omnigraph_core.storage import image as images
from omnigraph_core.write.commit import MAX_KEY, Landed, Prepared, WriteOptions, commit_write
from tests.integration.write.appends import Appending, append, opened, part_ids
from tests.support.graphs import HOLDS, PART, append_parts, new_graph, touch
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.storage.image import PendingImage, StoredImage
    from omnigraph_core.storage.session import Store

WINDOW = RECENT_COMMITS.value


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


def land(
    prepare: Callable[[CatalogState], Prepared],
    context: GraphContext,
    *,
    if_commit: str | None = None,
    is_rerunnable: bool = True,
) -> Landed:
    options = WriteOptions(if_commit=if_commit, idempotency_key="k")
    return commit_write(context, options, "load", prepare, is_rerunnable=is_rerunnable)


def versions(root: str, branch: str = "main") -> int:
    return opened(root).head(branch)[1].snapshot.manifest_version


def test_a_repeat_returns_the_first_result(context: GraphContext, root: str) -> None:
    first = append(context, "a", "b", key="k", digest="d")
    assert first.commit is not None
    assert not first.is_repeat
    again = append(context, "a", "b", key="k", digest="d")
    assert again == Landed(first.commit, {"rows": 2, "first": "a"}, is_repeat=True)
    elsewhere = append(opened(root), "a", "b", key="k", digest="d")
    assert elsewhere == again
    assert (versions(root), part_ids(root)) == (2, ["a", "b"])
    kept = opened(root).head("main")[1].snapshot.commit
    assert (kept.idempotency_key, kept.request_digest) == ("k", "d")
    assert json.loads(kept.summary or "") == first.summary


def test_a_repeat_prepares_nothing(context: GraphContext) -> None:
    append(context, "a", key="k")
    prepare = Appending(context, ["a"])
    assert land(prepare, context).is_repeat
    assert land(prepare, context, is_rerunnable=False).is_repeat
    assert prepare.asked == []


def test_other_keys_are_other_requests(context: GraphContext, root: str) -> None:
    assert not append(context, "a", key="k").is_repeat
    assert not append(context, "b", key="K").is_repeat
    assert not append(context, "c").is_repeat
    assert part_ids(root) == ["a", "b", "c"]


@pytest.mark.parametrize("digest", ["e", None])
def test_a_key_that_was_used_for_another_request(
    context: GraphContext, root: str, digest: str | None
) -> None:
    append(context, "a", key="k", digest="d")
    with pytest.raises(ConflictError, match="the idempotency key `k` was used for another") as it:
        append(context, "b", key="k", digest=digest)
    assert it.value.kind is ErrorKind.CONFLICT
    assert not it.value.retryable
    assert part_ids(root) == ["a"]


@pytest.mark.parametrize("key", ["k", " ", "é 1/2", "x" * MAX_KEY])
def test_keys_that_can_be(context: GraphContext, key: str) -> None:
    append(context, "a", key=key)
    assert append(context, "a", key=key).is_repeat


@pytest.mark.parametrize("key", ["", "x" * (MAX_KEY + 1), "a\nb", "\x00", "\ud800", "a\u2028"])
def test_keys_that_cannot_be(context: GraphContext, root: str, key: str) -> None:
    with pytest.raises(ConfigError, match="idempotency key"):
        append(context, "a", key=key)
    assert versions(root) == 1


def test_a_key_belongs_to_a_branch(context: GraphContext, other: Omnigraph, root: str) -> None:
    first = append(context, "a", key="k")
    other.branch_create("review")
    there = append(context, "b", branch="review", key="k")
    assert not there.is_repeat, "the branch inherits the commit, not its key"
    assert append(context, "b", branch="review", key="k").commit == there.commit
    assert append(context, "a", key="k").commit == first.commit
    assert (part_ids(root), part_ids(root, "review")) == (["a"], ["a", "b"])


def test_a_key_belongs_to_one_life_of_a_branch(context: GraphContext, other: Omnigraph) -> None:
    other.branch_create("review")
    append(context, "a", branch="review", key="k")
    other.branch_delete("review")
    other.branch_create("review")
    assert not append(context, "a", branch="review", key="k").is_repeat


def test_a_write_without_changes_leaves_its_key_unused(context: GraphContext, root: str) -> None:
    assert append(context, key="k") == Landed(None, {"rows": 0})
    assert not append(context, "a", key="k", digest="d").is_repeat
    assert part_ids(root) == ["a"]


def test_a_repeat_finds_its_own_commit_at_the_head(context: GraphContext, other: Omnigraph) -> None:
    head = context.head("main")[1].snapshot.commit.graph_commit_id
    first = land(Appending(context, ["a"]), context, if_commit=head)
    again = land(Appending(context, ["a"]), context, if_commit=head)
    assert again.is_repeat
    assert again.commit == first.commit
    touch(other)
    assert land(Appending(context, ["a"]), context, if_commit=head).commit == first.commit


# Long histories


@pytest.mark.parametrize("depth", [WINDOW + 6, 3 * WINDOW + 10])
def test_a_repeat_long_after(
    context: GraphContext, other: Omnigraph, root: str, depth: int
) -> None:
    first = append(context, "a", key="k", digest="d")
    for _ in range(depth):
        touch(other)
    for handle in (context, opened(root)):
        again = append(handle, "a", key="k", digest="d")
        assert again == Landed(first.commit, first.summary, is_repeat=True)
        with pytest.raises(ConflictError, match="was used for another request"):
            append(handle, "b", key="k", digest="e")
        assert not append(handle, handle_id(handle), key=handle_id(handle)).is_repeat
    assert versions(root) == 4 + depth


def handle_id(handle: GraphContext) -> str:
    return f"new-{id(handle)}"


def test_a_repeat_long_after_on_a_branch(context: GraphContext, other: Omnigraph) -> None:
    append(context, "a", key="k")
    other.branch_create("review")
    for _ in range(WINDOW + 2):
        touch(other, branch="review")
    first = append(context, "b", key="k", branch="review")
    for _ in range(WINDOW + 2):
        touch(other, branch="review")
    assert not first.is_repeat
    assert append(context, "b", key="k", branch="review").commit == first.commit


@pytest.mark.parametrize("point", ["log.before_append", "log.after_append"])
def test_a_log_that_lags_behind(
    context: GraphContext, other: Omnigraph, root: str, point: str
) -> None:
    first = append(context, "a", key="k")
    with arm(point, "error"):  # no flush succeeds
        for _ in range(2 * WINDOW):
            touch(other)
        assert append(opened(root), "a", key="k").commit == first.commit
    assert append(opened(root), "a", key="k").commit == first.commit


def test_a_log_that_was_removed(context: GraphContext, other: Omnigraph, root: str) -> None:
    first = append(context, "a", key="k")
    for _ in range(2 * WINDOW):
        touch(other)
    assert append(context, "a", key="k").commit == first.commit
    shutil.rmtree(Path(root) / GRAPH_COMMITS)
    assert append(context, "a", key="k").commit == first.commit
    assert append(opened(root), "a", key="k").commit == first.commit


def test_more_commits_than_an_image_carries_while_preparing(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    """The staged work stays: only the key is looked for again."""
    prepare = Appending(context, ["a"])
    prepare.meanwhile = lambda: [touch(other) for _ in range(WINDOW + LOG_FLUSH_INTERVAL.value)]
    first = land(prepare, context, is_rerunnable=False)
    assert first.commit is not None
    assert prepare.asked == [1]
    assert land(prepare, context).commit == first.commit
    assert part_ids(root) == ["a"]


def test_the_key_is_used_long_before_the_answer(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    """Beyond what the image carries when the slower one of two comes to publish."""
    found: list[Landed] = []

    def meanwhile() -> None:
        found.append(append(opened(root), "a", key="k", table_key=HOLDS))
        for _ in range(WINDOW + 1):
            touch(other)

    prepare = Appending(context, ["a"], meanwhile=meanwhile)
    assert land(prepare, context, is_rerunnable=False) == replace(found[0], is_repeat=True)
    assert part_ids(root) == []


# Races and lost answers


@pytest.mark.parametrize("is_rerunnable", [True, False])
@pytest.mark.parametrize("has_head", [True, False])
@pytest.mark.parametrize("table_key", [PART, HOLDS])
def test_the_same_request_lands_meanwhile(
    context: GraphContext, root: str, is_rerunnable: bool, has_head: bool, table_key: str
) -> None:
    """Also when it writes another table, so that the key alone tells."""
    found: list[Landed] = []
    prepare = Appending(context, ["a"])
    first = partial(append, opened(root), "a", key="k", table_key=table_key)
    prepare.meanwhile = lambda: found.append(first())
    head = context.head("main")[1].snapshot.commit.graph_commit_id if has_head else None
    landed = land(prepare, context, if_commit=head, is_rerunnable=is_rerunnable)
    assert landed == replace(found[0], is_repeat=True)
    assert prepare.asked == [1]
    assert part_ids(root) == (["a"] if table_key == PART else [])


def test_another_request_with_the_key_lands_meanwhile(context: GraphContext, root: str) -> None:
    prepare = Appending(
        context, ["a"], meanwhile=lambda: append(opened(root), "b", key="k", digest="e")
    )
    with pytest.raises(ConflictError, match="was used for another request"):
        land(prepare, context)
    assert part_ids(root) == ["b"]


def test_conflicts_that_have_nothing_to_do_with_the_key(
    context: GraphContext, other: Omnigraph, root: str
) -> None:
    head = context.head("main")[1].snapshot.commit.graph_commit_id
    prepare = Appending(context, ["a"], meanwhile=lambda: append_parts(other, ["x"]))
    with pytest.raises(VersionConflict):
        land(prepare, context, is_rerunnable=False)
    with pytest.raises(PreconditionFailed, match="head is"):
        land(Appending(context, ["a"]), context, if_commit=head)
    names = iter(["y"])
    prepare.meanwhile = lambda: [append_parts(other, [name]) for name in names]
    assert not land(prepare, context).is_repeat
    assert part_ids(root) == ["a", "x", "y"]


def test_an_error_after_landing(context: GraphContext, root: str) -> None:
    with arm("publish.after_image", "error"), pytest.raises(StorageError):
        append(context, "a", key="k")
    again = append(context, "a", key="k")
    assert again.is_repeat
    assert again.summary == {"rows": 1, "first": "a"}
    assert part_ids(root) == ["a"]


def append_once(root: str) -> str | None:
    """In a worker: one keyed write; the id of the commit if it is not a repeat."""
    landed = append(opened(root), "a", key="k")
    return landed.commit.graph_commit_id if landed.commit and not landed.is_repeat else None


@pytest.mark.parametrize(
    ("point", "has_landed"), [("publish.after_image", True), ("image.after_files", False)]
)
def test_a_writer_that_is_killed(
    context: GraphContext, root: str, point: str, has_landed: bool
) -> None:
    armed = {"OMNIGRAPH_FAILPOINTS": f"{point}=crash"}
    outcome = spawn(f"{__name__}:append_once", root, env=armed).wait()
    assert outcome.returncode == -signal.SIGKILL
    again = append(context, "a", key="k")
    assert again.is_repeat is has_landed
    assert again.summary == {"rows": 1, "first": "a"}
    assert part_ids(root) == ["a"]


def test_a_repeat_by_a_fresh_process(context: GraphContext, root: str) -> None:
    append(context, "a", key="k")
    outcome = spawn(f"{__name__}:append_once", root).wait().check()
    assert outcome.stdout == "", "it found the first one's commit"
    assert part_ids(root) == ["a"]


@pytest.mark.parametrize("has_arrived", [True, False])
def test_an_outcome_that_is_unknown(
    context: GraphContext, root: str, monkeypatch: pytest.MonkeyPatch, has_arrived: bool
) -> None:
    """The store stops answering; the repeat finds what landed, or lands itself."""
    commit_next = images.try_commit
    sent: list[tuple[Store, StoredImage, PendingImage]] = []

    def lose(store: Store, base: StoredImage, pending: PendingImage) -> StoredImage | None:
        if has_arrived and not sent:
            commit_next(store, base, pending)
        sent.append((store, base, pending))
        raise StorageError("no answer", retryable=True)

    def unreachable(*_: object) -> None:
        raise StorageError("no answer", retryable=True)

    with monkeypatch.context() as patched:
        patched.setattr(images, "try_commit", lose)
        patched.setattr(images, "read_latest", unreachable)
        with pytest.raises(CommitOutcomeUnknown) as caught:
            append(context, "a", key="k")
    assert caught.value.hint == "when the store answers, repeat the request with the same key"
    again = append(context, "a", key="k")
    assert again.is_repeat is has_arrived
    if not has_arrived:  # what was on its way all the time comes too late
        assert commit_next(*sent[0]) is None
    assert (versions(root), part_ids(root)) == (2, ["a"])


def test_without_a_key_an_unknown_outcome_forbids_a_repeat(
    context: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def lose(*_: object, **__: object) -> None:
        asked.append(1)
        raise CommitOutcomeUnknown("no answer", commit_id="c", hint="do not write again")

    monkeypatch.setattr(door, "commit", lose)
    with pytest.raises(CommitOutcomeUnknown) as caught:
        append(context, "a")
    assert (asked, caught.value.hint) == ([1], "do not write again")


# What is stored


@pytest.mark.parametrize("summary", ["{", "[1]", "3"])
def test_a_damaged_summary(
    context: GraphContext, monkeypatch: pytest.MonkeyPatch, summary: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("omnigraph_core.write.commit._json", lambda _: summary)
        append(context, "a", key="k")
    with pytest.raises(StorageError, match=r"the summary of commit .* is damaged"):
        append(context, "a", key="k")


def test_a_summary_that_is_not_json(context: GraphContext, root: str) -> None:
    def prepare(state: CatalogState) -> Prepared:
        return replace(Appending(context, ["a"])(state), summary={"rows": float("nan")})

    with pytest.raises(InvariantBroken, match="ready for JSON"):
        land(prepare, context)
    assert versions(root) == 1
