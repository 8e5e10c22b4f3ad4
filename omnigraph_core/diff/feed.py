"""The change feed: a cursor comes in, what the commits after it changed and the next cursor go out.

One block for each commit along first parents, oldest first, whole or not at all. A reader who keeps
the cursor of the last page it has worked off misses nothing and gets nothing twice. Of a page as
many changes are in memory as asked for, or those of one block that has more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from omnigraph_core.diff.cursor import Cursor, decode_cursor, encode_cursor, filter_digest
from omnigraph_core.diff.follow import follow, follow_on, is_followed, is_same_choice
from omnigraph_core.diff.line import find_line
from omnigraph_core.diff.model import EVERYTHING, ChangePage, CommitChanges
from omnigraph_core.diff.schemas import document_of
from omnigraph_core.diff.snapshots import compare_snapshots
from omnigraph_core.diff.tables import check_type_names
from omnigraph_core.errors import (
    ChangeFeedGap,
    ConfigError,
    CursorRejected,
    ObjectNotFound,
    SnapshotNotFound,
)
from omnigraph_core.interruption import pause

if TYPE_CHECKING:
    from omnigraph_core.diff.follow import Followed
    from omnigraph_core.diff.line import Line, Place
    from omnigraph_core.diff.model import ChangeFilter
    from omnigraph_core.diff.rows import TableDiff
    from omnigraph_core.diff.snapshots import SnapshotDiff
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot

MOST_COMMITS: Final = 128
"""Commits that a page goes through unless told otherwise."""
MOST_CHANGES: Final = 1_000
"""Changes that a page holds unless told otherwise, or one block if that has more."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader of the feed asks for."""

    filter: ChangeFilter = EVERYTHING
    has_values: bool = True
    most_commits: int = MOST_COMMITS
    most_changes: int = MOST_CHANGES

    def __post_init__(self) -> None:
        for name in ("most_commits", "most_changes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"`{name}` is {getattr(self, name)}, give 1 or more")


def cursor_at(
    context: GraphContext, branch: str, commit_id: str | None, filter: ChangeFilter
) -> str:
    """The cursor of whoever knows a branch as a commit of it has made it; its head without one.

    Raises:
        BranchNotFound: there is no such branch.
        CommitNotFound: there is no such commit.
        ConfigError: the commit was not made on that branch, or the filter names no type.
    """
    ref, state = context.head(branch)
    head = state.snapshot
    if commit_id is None or commit_id == head.commit.graph_commit_id:
        check_type_names(filter, head)
        return encode_cursor(_cursor(ref, head, head.commit, filter, follow(filter, head, head)))
    commit = context.commits.find(commit_id)
    line = find_line(context.store, ref, head, commit.incarnation, commit.manifest_version)
    if line is None:
        raise ConfigError(
            f"the commit {commit_id} is not on the line of first parents of `{ref.branch}`",
            hint=f"it was made on `{commit.manifest_branch or 'main'}`",
        )
    types = _followed_from(line, head, filter) if filter.type_names else ()
    return encode_cursor(_cursor(ref, head, commit, filter, types))


def poll(context: GraphContext, branch: str, cursor: str, wanted: Wanted) -> ChangePage:
    """What was committed on a branch after a cursor.

    Raises:
        BranchNotFound: there is no such branch.
        CursorRejected: the cursor is of another graph, branch or filter, or damaged.
        ChangeFeedGap: cleanup has removed what came right after it.
    """
    at = decode_cursor(cursor)
    ref, state = context.head(branch)
    head = state.snapshot
    _check_bound(at, ref, head, wanted.filter)
    if at.commit_id == head.commit.graph_commit_id:
        _check_types(at, wanted.filter, head, head)
        return ChangePage((), cursor)
    line = find_line(context.store, ref, head, at.commit_incarnation, at.commit_version)
    if line is None:
        raise _elsewhere(at)
    start = _load_start(line)
    if start.commit.graph_commit_id != at.commit_id:
        raise _elsewhere(at)
    _check_types(at, wanted.filter, start, head)
    return _page(context, line, start, wanted, at)


def _followed_from(line: Line, head: Snapshot, filter: ChangeFilter) -> Followed:
    """What the filter stands for where a line begins.

    Raises:
        ConfigError: it names a type that was not there, and is not now.
    """
    try:
        start = line.load(line.start)
    except SnapshotNotFound:
        return follow(filter, None, head)  # to poll from here is a gap
    check_type_names(filter, start, head)
    return follow(filter, start, head)


def _cursor(
    ref: BranchRef, head: Snapshot, commit: GraphCommit, filter: ChangeFilter, types: Followed
) -> Cursor:
    return Cursor(
        graph=document_of(head.schema).schema_identity_domain,
        branch=ref.branch,
        incarnation=ref.incarnation,
        filter=filter_digest(filter),
        commit_id=commit.graph_commit_id,
        commit_incarnation=commit.incarnation,
        commit_version=commit.manifest_version,
        types=types,
    )


def _check_bound(at: Cursor, ref: BranchRef, head: Snapshot, filter: ChangeFilter) -> None:
    expected = _cursor(ref, head, head.commit, filter, at.types)
    if at.graph != expected.graph:
        raise CursorRejected("the cursor is of another graph")
    if at.branch != expected.branch:
        raise CursorRejected(
            f"the cursor is of the branch `{at.branch}`", hint=f"this is `{ref.branch}`"
        )
    if at.incarnation != expected.incarnation:
        raise CursorRejected(
            f"the cursor is of an earlier branch `{at.branch}`, which was deleted",
            hint="read the branch that has this name now as a whole, and begin with a new cursor",
        )
    if at.filter != expected.filter:
        raise _other_filter()


def _check_types(at: Cursor, filter: ChangeFilter, start: Snapshot, head: Snapshot) -> None:
    if not is_same_choice(at.types, filter, start, head):
        raise _other_filter()


def _other_filter() -> CursorRejected:
    return CursorRejected(
        "the cursor is of another filter",
        hint="give the filter the cursor was made with, or begin with a new cursor",
    )


def _load_start(line: Line) -> Snapshot:
    try:
        return line.load(line.start)
    except SnapshotNotFound as gone:
        raise _gap(line, line.start) from gone


def _elsewhere(at: Cursor) -> CursorRejected:
    return CursorRejected(
        f"the cursor is at the commit {at.commit_id}, which `{at.branch}` no longer has",
        hint="was an older copy of the graph put in place? Read the branch as a whole, and begin "
        "with a new cursor",
    )


def _page(
    context: GraphContext, line: Line, start: Snapshot, wanted: Wanted, at: Cursor
) -> ChangePage:
    blocks: list[CommitChanges] = []
    known, known_place, types = start, line.start, at.types
    room = wanted.most_changes
    for place in islice(line.iter_after(line.start), wanted.most_commits):
        pause()
        try:
            step = _compared(context, known, line.load(place), wanted.filter, types)
            if blocks and step.total > room:
                break
            changes = step.diff.change_set(has_values=wanted.has_values, tables=step.tables)
        except (SnapshotNotFound, ObjectNotFound) as gone:
            if known is not start:
                break  # what came before is given first, and the next call tells
            if line.is_there(known_place) and line.is_there(place):
                raise  # a file is lost: that is no gap but damage
            raise _gap(line, known_place) from gone
        known, known_place, types = step.diff.after, place, step.types
        # A schema that changed is told even if no row is: what follows is of another shape.
        if step.total or changes.stats.schema_steps:
            blocks.append(CommitChanges(known.commit, changes))
            room -= step.total
    return ChangePage(
        tuple(blocks),
        encode_cursor(_moved(at, known.commit, types)),
        is_caught_up=known.commit == line.head.commit,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """One commit compared with the one before, its rows not yet read."""

    diff: SnapshotDiff
    tables: tuple[TableDiff, ...]
    types: Followed
    """What is followed after it."""

    @property
    def total(self) -> int:
        return sum(table.counts.total for table in self.tables)


def _compared(
    context: GraphContext,
    before: Snapshot,
    after: Snapshot,
    filter: ChangeFilter,
    types: Followed,
) -> _Step:
    rest = replace(filter, type_names=frozenset())
    diff = compare_snapshots(context, before, after, rest, is_successive=True)
    later = follow_on(types, before, after, diff.schema.continuity)
    if types:
        pairs = tuple(pair for pair in diff.pairs if is_followed(pair, types, later))
        diff = replace(diff, pairs=pairs)
    return _Step(diff, tuple(diff.iter_tables()), later)


def _gap(line: Line, before: Place) -> ChangeFeedGap:
    return ChangeFeedGap(
        f"commits of `{line.head.branch}` after the cursor were cleaned up",
        resume_commit_id=_resume(line, before),
    )


def _resume(line: Line, place: Place) -> str:
    """The oldest commit after a place that can be read; others may be cleaning up just now."""
    while True:
        place = line.oldest_after(place)
        try:
            return line.load(place).commit.graph_commit_id
        except SnapshotNotFound:
            continue


def _moved(at: Cursor, commit: GraphCommit, types: Followed) -> Cursor:
    return replace(
        at,
        commit_id=commit.graph_commit_id,
        commit_incarnation=commit.incarnation,
        commit_version=commit.manifest_version,
        types=types,
    )
