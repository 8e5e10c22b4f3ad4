"""Every operation that writes, what it passes on the way, and the graphs it is tried on.

`points` is exactly what an operation passes: a test holds the list against a run. From the point
`visible_from` on, what it does has happened, whatever becomes of the process that asked for it;
one of two durable effects is half done from `halfway_from` on.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import LOG_FLUSH_INTERVAL
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import StorageError
from omnigraph_core.failpoints import arm
from tests.faults import evolutions, merges, writes
from tests.faults.writes import SOME, make_written, new_graph, records
from tests.support.graphs import touch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_STAGE: Final = ("stage.before_files", "stage.after_files", "stage.after_version")
_PUBLISH: Final = (
    "publish.before_image",
    "image.after_files",
    "image.after_commit",
    "publish.after_image",
)
_LOG: Final = ("log.before_append", "log.after_append")
_CREATE_BRANCH: Final = ("branch.after_catalog", "branch.after_ref")
_DELETE_BRANCH: Final = ("branch.after_deleted_mark", "branch.after_delete")


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of write; `run` takes a word, so that a test can run it twice.

    Tests kill a process at every point of an operation, and raise an error at every point. At those
    in `survives` the operation succeeds all the same, though only halfway at those in `gives_up`. A
    `repeatable` operation that runs again with the same word does what is left to do, and nothing
    twice.
    """

    name: str
    run: Callable[[Omnigraph, str], object]
    points: tuple[str, ...]
    visible_from: str | None = None
    survives: tuple[str, ...] = ()
    graph: str = "plain"
    repeatable: bool = False
    halfway: Operation | None = None
    halfway_from: str | None = None
    gives_up: tuple[str, ...] = ()

    def done_at(self, point: str) -> Operation | None:
        """What a process that ends at the point has done: this, half of it, or nothing."""
        if self._is_past(point, self.visible_from):
            return self
        return self.halfway if self._is_past(point, self.halfway_from) else None

    def done_despite(self, point: str) -> Operation | None:
        """What was done when an error was raised at the point."""
        if point not in self.survives:
            return self.done_at(point)
        return self.halfway if point in self.gives_up else self

    def _is_past(self, point: str, since: str | None) -> bool:
        return since is not None and self.points.index(point) >= self.points.index(since)


def perform(name: str, address: str, word: str) -> None:
    """In a process of its own, which a failpoint may end."""
    BY_NAME[name].run(Omnigraph.open(address), word)


def _optimize(og: Omnigraph, word: str) -> None:
    """The second time there is something to do again."""
    if word == "second":
        _load(og, word)
    og.optimize()


def _create_branch(og: Omnigraph, word: str) -> None:
    og.branch_create(f"new/{word}")


def _delete_branch(og: Omnigraph, word: str) -> None:
    og.branch_delete(f"old/{word}")


def _create_tag(og: Omnigraph, word: str) -> None:
    og.tag_create(word)


def _begin_run(og: Omnigraph, word: str) -> None:
    og.begin_run(operation_hash=word)


def _list_commits(og: Omnigraph, word: str) -> None:
    og.list_commits()


LANDED: Final = "image.after_commit"


def _write(name: str, run: Callable[[Omnigraph, str], object], graph: str = "written") -> Operation:
    return _repeatable(name, run, _STAGE + _PUBLISH, graph)


def _repeatable(
    name: str, run: Callable[[Omnigraph, str], object], points: tuple[str, ...], graph: str
) -> Operation:
    return Operation(name, run, points, LANDED, (LANDED,), graph, repeatable=True)


_MERGE_ROWS: Final = (*_STAGE, "merge.after_table", "merge.after_stage", *_PUBLISH)
_FORWARD: Final = ("merge.after_stage", *_PUBLISH)
_COMPACT: Final = ("compact.after_rewrite", "compact.after_record")
_SCHEMA: Final = (
    "schema.after_lock",
    *_STAGE,
    "schema.after_table",
    "schema.after_stage",
    *_PUBLISH,
    "schema.after_publish",
)
_PURGE: Final = (*_LOG, "cleanup.after_intent", "cleanup.after_trim", "cleanup.after_table")
_DELETE_MERGED: Final = ("merge.after_publish", *_DELETE_BRANCH)


OPERATIONS: Final = (
    Operation(
        "compaction",
        _optimize,
        (*_STAGE, *_COMPACT, "index.after_build", *_PUBLISH, "log.after_fold"),
        LANDED,
        (LANDED, "log.after_fold"),
        graph="long logs",
    ),
    Operation(
        "index",
        _optimize,
        (*_STAGE, "index.after_build", *_PUBLISH),
        LANDED,
        (LANDED,),
        graph="written",
    ),
    Operation("branch create", _create_branch, _CREATE_BRANCH, "branch.after_ref"),
    Operation(
        "branch delete",
        _delete_branch,
        _DELETE_BRANCH + _LOG,
        "branch.after_delete",
        _LOG,
    ),
    Operation("tag create", _create_tag, ()),
    Operation("run begin", _begin_run, _CREATE_BRANCH),
    Operation("log append", _list_commits, _LOG, survives=_LOG),
    replace(
        _repeatable(
            "load that flushes", writes.load_append, _STAGE + _PUBLISH + _LOG, "before a flush"
        ),
        survives=(LANDED, *_LOG),
    ),
    _write("load, append", writes.load_append),
    _write("load, merge", writes.load_merge),
    _write("load, overwrite", writes.load_overwrite),
    _repeatable(
        "publish of frames",
        writes.publish_staged,
        (*_STAGE, *_PUBLISH, "frames.after_commit"),
        "written",
    ),
    _write("mutate, insert", writes.insert),
    _write("mutate, update", writes.update),
    _write("mutate, delete", writes.delete),
    _write("backfill", writes.backfill, graph="pending"),
    _repeatable("merge", merges.merge, _MERGE_ROWS, "diverged"),
    replace(
        _repeatable("merge of schemas", merges.merge, _LOG + _MERGE_ROWS, "evolved apart"),
        survives=(LANDED, *_LOG),
    ),
    _repeatable("cherry-pick", merges.cherry_pick, _MERGE_ROWS, "diverged"),
    _repeatable("revert", merges.revert, _MERGE_ROWS, "diverged"),
    _repeatable("reset", merges.reset, _PUBLISH, "diverged"),
    Operation(
        "merge that deletes",
        merges.merge_and_delete,
        _FORWARD + _DELETE_MERGED,
        "branch.after_delete",
        (LANDED, *_DELETE_MERGED),
        graph="behind",
        repeatable=True,
        halfway=_repeatable("merge behind", merges.merge_behind, _FORWARD, "behind"),
        halfway_from=LANDED,
        gives_up=("merge.after_publish", "branch.after_deleted_mark"),
    ),
    Operation(
        "run publish",
        merges.publish_run,
        (*_LOG, *_FORWARD, "run.after_merge", "run.after_end", *_DELETE_BRANCH),
        "run.after_end",
        (LANDED, *_DELETE_BRANCH, *_LOG),
        graph="running",
        repeatable=True,
        halfway=_repeatable("run merge", merges.merge_run, _FORWARD, "running"),
        halfway_from=LANDED,
    ),
    _repeatable("schema steps", evolutions.take_steps, _SCHEMA, "evolving"),
    _repeatable(
        "soft drop",
        evolutions.drop_softly,
        tuple(point for point in _SCHEMA if point != "schema.after_table"),
        "evolving",
    ),
    replace(
        _repeatable(
            "hard drop",
            evolutions.drop_for_good,
            (*_COMPACT, *(point for point in _SCHEMA if point != "schema.after_table"), *_PURGE),
            "evolving",
        ),
        survives=(LANDED, *_PURGE),
    ),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}


def make_plain(address: str) -> None:
    """Some rows in a fragment each, branches to delete, a tag, commits that the log lacks."""
    og = new_graph(address)
    for id in SOME:
        _load(og, id)
    og.tag_create("kept")
    for word in ("first", "second"):
        og.branch_create(f"old/{word}")
        _load(og, f"on {word}", f"old/{word}")


def make_long_logs(address: str) -> None:
    """The log of commits is in more files than need be, and so are the tables."""
    og = new_graph(address)
    for id in (*SOME, "a4", "a5", "a6"):
        _load(og, id)
        og.list_commits()


def make_before_a_flush(address: str) -> None:
    """The next commit on main is the one that appends to the commit log."""
    make_written(address)
    og = Omnigraph.open(address)
    while og.snapshot().manifest_version < LOG_FLUSH_INTERVAL.value - 1:
        touch(og)


def make_worn(address: str) -> None:
    """Old versions, files only they need or nothing ever needed, branches gone, merged, half made.

    Some branches are forked where others have moved on: what they need must stay.
    """
    make_plain(address)
    og = Omnigraph.open(address)
    for word in ("x", "y", "z"):
        writes.load_overwrite(og, word)
    with arm("publish.before_image", "error"), contextlib.suppress(StorageError):
        _load(og, "never published")
    og.branch_create("gone")
    _load(og, "on gone", "gone")
    og.branch_delete("gone")
    with arm("branch.after_catalog", "error"), contextlib.suppress(StorageError):
        og.branch_create("never")
    og.branch_create("merged")
    _load(og, "on merged", "merged")
    _load(og, "on main")
    og.branch_merge("merged", delete_branch=True)
    writes.load_overwrite(og, "last")
    _load(og, "at last")


def _load(og: Omnigraph, id: str, branch: str = "main") -> None:
    og.load(records([id]), mode="append", branch=branch, actor="tester")


GRAPHS: Final[Mapping[str, Callable[[str], None]]] = {
    "worn": make_worn,
    "plain": make_plain,
    "long logs": make_long_logs,
    "before a flush": make_before_a_flush,
    "written": make_written,
    "pending": writes.make_pending,
    "diverged": merges.make_diverged,
    "behind": merges.make_behind,
    "evolved apart": merges.make_evolved_apart,
    "running": merges.make_running,
    "evolving": evolutions.make_evolving,
}
"""Each makes a graph at an address."""
