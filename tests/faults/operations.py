"""Every operation that writes, what it passes on the way, and the graphs it is tried on.

`points` is exactly what an operation passes: a test holds the list against a run. From the point
`visible_from` on, what it does has happened, whatever becomes of the process that asked for it;
one of two durable effects is half done from `halfway_from` on.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from omnigraph_core.constants import LOG_FLUSH_INTERVAL
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import StorageError
from omnigraph_core.failpoints import arm
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.settings import SCHEMA_LOCK
from omnigraph_core.storage.schema_change import add_null_column
from omnigraph_core.storage.staged import (
    stage_append,
    stage_delete_keys,
    stage_delete_where,
    stage_overwrite,
    stage_upsert,
)
from tests.faults import evolutions, merges, writes
from tests.support.graphs import (
    BIN,
    HOLDS,
    PART,
    append,
    append_pair,
    holds,
    new_graph,
    parts,
    publish,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.storage.dataset import Table

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

SOME: Final = ("a1", "a2", "a3")
"""Pairs that every prepared graph has on main."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of write; `run` is told a word, so that it can be done twice.

    A process is killed at every point it passes, and errors are raised at every one; at those in
    `survives` the operation succeeds all the same, though only halfway at those in `gives_up`. If
    it is `repeatable`, then doing it again with the same word does what is still to be done, and
    nothing twice. Unless it leaves what no schema allows, the graph `is_sound` afterwards.
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
    is_sound: bool = True

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


def _append(og: Omnigraph, word: str) -> None:
    append_pair(og, [word])


def _upsert(og: Omnigraph, word: str) -> None:
    _write_both(
        og,
        TableOperation.UPSERT,
        lambda table: stage_upsert(table, parts(["a1", word], stock=len(word))),
        lambda table: stage_upsert(table, holds(["a1", word])),
    )


def _delete(og: Omnigraph, word: str) -> None:
    gone = {"first": "a1", "second": "a2"}[word]
    _write_both(
        og,
        TableOperation.DELETE,
        lambda table: stage_delete_keys(table, pa.array([gone])),
        lambda table: stage_delete_where(table, f"`dst` = '{gone}'"),
    )


def _overwrite(og: Omnigraph, word: str) -> None:
    _write_both(
        og,
        TableOperation.OVERWRITE,
        lambda table: stage_overwrite(table, parts([word, "b1"])),
        lambda table: stage_overwrite(table, holds([word, "b1"])),
    )


def _add_column(og: Omnigraph, word: str) -> None:
    field = pa.field(word, pa.int64())
    _write_both(
        og,
        TableOperation.SCHEMA,
        lambda table: add_null_column(table, field),
        lambda table: add_null_column(table, field),
    )


def _apply_schema(og: Omnigraph, word: str) -> None:
    """A filled column and a new type; a lock that a killed process left has expired by now."""
    source = og.schema_show().source
    source = source.replace("stock: I64?", f"stock: I64?\n  {word}: I64 @default(7)")
    source += f"node {word.title()} {{ code: String @key }}\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SCHEMA_LOCK.name, "0.001")
        og.schema_apply(source)


def _write_both(
    og: Omnigraph,
    operation: TableOperation,
    of_parts: Callable[[Table], Table | None],
    of_holds: Callable[[Table], Table | None],
) -> None:
    snapshot = og.snapshot()
    part, edge = of_parts(og.table(snapshot, PART)), of_holds(og.table(snapshot, HOLDS))
    assert part is not None
    assert edge is not None
    publish(og, snapshot, {PART: part, HOLDS: edge}, operation)


def _optimize(og: Omnigraph, word: str) -> None:
    """The second time there is something to do again."""
    if word == "second":
        append_pair(og, [word])
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


_LANDED: Final = "image.after_commit"


def _row_write(name: str, run: Callable[[Omnigraph, str], object]) -> Operation:
    return Operation(name, run, _STAGE + _PUBLISH, _LANDED, (_LANDED,))


def _write(name: str, run: Callable[[Omnigraph, str], object], graph: str = "written") -> Operation:
    return _repeatable(name, run, _STAGE + _PUBLISH, graph)


def _repeatable(
    name: str, run: Callable[[Omnigraph, str], object], points: tuple[str, ...], graph: str
) -> Operation:
    return Operation(name, run, points, _LANDED, (_LANDED,), graph, repeatable=True)


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
    _row_write("append", _append),
    _row_write("upsert", _upsert),
    _row_write("delete", _delete),
    _row_write("overwrite", _overwrite),
    replace(_row_write("add column", _add_column), is_sound=False),
    Operation("schema apply", _apply_schema, _SCHEMA, _LANDED, (_LANDED,)),
    Operation(
        "compaction",
        _optimize,
        (*_STAGE, *_COMPACT, "index.after_build", *_PUBLISH, "log.after_fold"),
        _LANDED,
        (_LANDED, "log.after_fold"),
        graph="long logs",
    ),
    Operation(
        "index",
        _optimize,
        (*_STAGE, "index.after_build", *_PUBLISH),
        _LANDED,
        (_LANDED,),
        graph="one fragment",
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
    Operation(
        "append that flushes",
        _append,
        _STAGE + _PUBLISH + _LOG,
        _LANDED,
        (_LANDED, *_LOG),
        graph="before a flush",
    ),
    _write("load, append", writes.load_append),
    _write("load, merge", writes.load_merge),
    _write("load, overwrite", writes.load_overwrite),
    _write("mutate, insert", writes.insert),
    _write("mutate, update", writes.update),
    _write("mutate, delete", writes.delete),
    _write("backfill", writes.backfill, graph="pending"),
    _repeatable("merge", merges.merge, _MERGE_ROWS, "diverged"),
    replace(
        _repeatable("merge of schemas", merges.merge, _LOG + _MERGE_ROWS, "evolved apart"),
        survives=(_LANDED, *_LOG),
    ),
    _repeatable("cherry-pick", merges.cherry_pick, _MERGE_ROWS, "diverged"),
    _repeatable("revert", merges.revert, _MERGE_ROWS, "diverged"),
    _repeatable("reset", merges.reset, _PUBLISH, "diverged"),
    Operation(
        "merge that deletes",
        merges.merge_and_delete,
        _FORWARD + _DELETE_MERGED,
        "branch.after_delete",
        (_LANDED, *_DELETE_MERGED),
        graph="behind",
        repeatable=True,
        halfway=_repeatable("merge behind", merges.merge_behind, _FORWARD, "behind"),
        halfway_from=_LANDED,
        gives_up=("merge.after_publish", "branch.after_deleted_mark"),
    ),
    Operation(
        "run publish",
        merges.publish_run,
        (*_LOG, *_FORWARD, "run.after_merge", "run.after_end", *_DELETE_BRANCH),
        "run.after_end",
        (_LANDED, *_DELETE_BRANCH, *_LOG),
        graph="running",
        repeatable=True,
        halfway=_repeatable("run merge", merges.merge_run, _FORWARD, "running"),
        halfway_from=_LANDED,
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
        survives=(_LANDED, *_PURGE),
    ),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}


def make_plain(og: Omnigraph) -> None:
    """Some rows in a fragment each, branches to delete, a tag, a run, commits not in the log."""
    append(og, BIN, ["bin"])
    for id in SOME:
        append_pair(og, [id])
    og.tag_create("kept")
    for word in ("first", "second"):
        og.branch_create(f"old/{word}")
        append_pair(og, [f"on {word}"], f"old/{word}")


def make_one_fragment(og: Omnigraph) -> None:
    """Nothing to compact, everything to index."""
    append(og, BIN, ["bin"])
    append_pair(og, SOME)


def make_long_logs(og: Omnigraph) -> None:
    """The log of commits is in more files than need be, and so are the tables."""
    append(og, BIN, ["bin"])
    for id in (*SOME, "a4", "a5", "a6"):
        append_pair(og, [id])
        og.list_commits()


def make_before_a_flush(og: Omnigraph) -> None:
    """The next commit on main is the one that appends to the commit log."""
    append(og, BIN, ["bin"])
    append_pair(og, SOME)
    while (snapshot := og.snapshot()).manifest_version < LOG_FLUSH_INTERVAL.value - 1:
        publish(og, snapshot, {PART: og.table(snapshot, PART)}, TableOperation.INDEX)


def make_worn(og: Omnigraph) -> None:
    """Old versions, files only they need or nothing ever needed, branches gone, merged, half made.

    Some branches are forked where others have moved on: what they need must stay.
    """
    make_plain(og)
    for word in ("x", "y", "z"):
        _overwrite(og, word)
    stage_append(og.table(og.snapshot(), PART), parts(["never published"]))
    og.branch_create("gone")
    append_pair(og, ["on gone"], "gone")
    og.branch_delete("gone")
    with arm("branch.after_catalog", "error"), contextlib.suppress(StorageError):
        og.branch_create("never")
    og.branch_create("merged")
    append_pair(og, ["on merged"], "merged")
    append_pair(og, ["on main"])
    og.branch_merge("merged", delete_branch=True)
    _overwrite(og, "last")
    append_pair(og, ["at last"])


GRAPHS: Final[Mapping[str, Callable[[str], None]]] = {
    "worn": lambda address: make_worn(new_graph(address)),
    "plain": lambda address: make_plain(new_graph(address)),
    "one fragment": lambda address: make_one_fragment(new_graph(address)),
    "long logs": lambda address: make_long_logs(new_graph(address)),
    "before a flush": lambda address: make_before_a_flush(new_graph(address)),
    "written": writes.make_written,
    "pending": writes.make_pending,
    "diverged": merges.make_diverged,
    "behind": merges.make_behind,
    "evolved apart": merges.make_evolved_apart,
    "running": merges.make_running,
    "evolving": evolutions.make_evolving,
}
"""Each makes a graph at an address."""
