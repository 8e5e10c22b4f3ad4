"""Functions for child processes that may do less than the tests: read only, or small files only."""

from __future__ import annotations

import os
import resource
import tempfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import OmnigraphError
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.graphs import PART, append_pair, append_parts, ids, new_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NOBODY = 65534


def told(actions: Mapping[str, Callable[[], object]]) -> dict[str, list[object]]:
    """What each action ended in: class, message and hint of its error, or its result."""
    found: dict[str, list[object]] = {}
    for name, action in actions.items():
        try:
            found[name] = ["ok", repr(action())]
        except OmnigraphError as error:
            found[name] = [type(error).__name__, error.message, error.hint, error.retryable]
    return found


def use_read_only(address: str) -> dict[str, list[object]]:
    """Everything one can try on a graph one may only read. The superuser becomes nobody first."""
    with tempfile.TemporaryDirectory() as scratch:
        # What is imported on first use is imported now: nobody may not read the interpreter.
        make_graph(f"{scratch}/graph")
        told(every_action(f"{scratch}/graph"))
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return told(every_action(address))


def make_graph(address: str) -> None:
    """One commit and a tag on main, one commit on a branch."""
    og = new_graph(address)
    append_pair(og, ["a"])
    og.tag_create("v1")
    og.branch_create("review")
    append_pair(og, ["b"], "review")


def every_action(address: str) -> dict[str, Callable[[], object]]:
    og = Omnigraph.open(address)
    head = og.head_commit_id_for_branch()
    return {
        "rows": lambda: ids(og, og.snapshot("review")),
        "version": lambda: ids(og, og.snapshot_at_version(2)),
        "entity": lambda: og.entity_at(PART, "a", version=2),
        "commit": lambda: og.get_commit(head).operation,
        "commits": lambda: len(og.list_commits()),
        "tag": lambda: ids(og, og.snapshot_of(ReadTarget(tag="v1"))),
        "moment": lambda: og.snapshot_at_time(datetime.now(UTC)).manifest_version,
        "runs": lambda: len(og.list_runs()),
        "preview": lambda: og.cleanup(keep=1, is_preview=True).is_preview,
        "init": lambda: new_graph(address),
        "init below": lambda: new_graph(f"{address}/new"),
        "append": lambda: append_parts(og, ["x"]),
        "branch_create": lambda: og.branch_create("x"),
        "branch_delete": lambda: og.branch_delete("review"),
        "tag_create": lambda: og.tag_create("v2"),
        "tag_delete": lambda: og.tag_delete("v1"),
        "begin_run": og.begin_run,
        "optimize": og.optimize,
    }


def use_small_files(address: str, limit: int) -> dict[str, list[object]]:
    """A disk that is full after so many bytes of each file."""
    og = Omnigraph.open(address)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    many = [f"{number:06d}" for number in range(2000)]
    found = told({"append": lambda: append_pair(og, many), "rows": lambda: ids(og, og.snapshot())})
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return found | told({"later": lambda: append_pair(og, many).manifest_version})
