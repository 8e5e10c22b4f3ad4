"""A diff is exactly the way from one snapshot to another, of whatever lineage they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.diff.model import ChangeOp
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.query.typed import EntityKind
from tests.support.examples import seeds
from tests.support.merge_checks import without_empty
from tests.support.merge_worlds import SCHEMA, World, as_row, graph_of
from tests.support.schema_worlds import (
    LATER_VALUES,
    REFORMS,
    SHELF_TO_RACK,
    schema_text,
    seen_after,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from omnigraph_core.diff.model import ChangeSet, EntityChange
    from tests.support.merge_oracle import Graph, Row

BRANCHES = ("main", "left", "right")


def history(path: Path, seed: int, steps: int = 8) -> World:
    """Three branches that edit and merge for a while."""
    made = World(Omnigraph.init(str(path / "graph"), SCHEMA), seed)
    made.fill("main")
    for branch in BRANCHES[1:]:
        made.og.branch_create(branch)
    for _ in range(steps):
        branch = made.random.choice(BRANCHES)
        made.edit(branch, 1)
        if made.random.random() < 0.3:
            source, target = made.random.sample(BRANCHES, 2)
            tried = made.og.branch_merge(source, into=target, resolve="ours", dry_run=True)
            if not tried.conflicts:
                made.og.branch_merge(source, into=target, resolve="ours")
    return made


def replay(changes: Iterable[EntityChange], start: Graph) -> Graph:
    """What a graph becomes; every change must fit what is there."""
    graph = {key: dict(rows) for key, rows in start.items()}
    for change in changes:
        rows = graph.setdefault(change.table_key, {})
        assert row_of(change.before) == rows.pop(change.id, None)
        assert (change.before is None) == (change.op is ChangeOp.INSERT)
        assert (change.after is None) == (change.op is ChangeOp.DELETE)
        after = row_of(change.after)
        if after is not None:
            rows[change.id] = after
    return without_empty(graph)


def across(changes: Iterable[EntityChange], start: Graph, names: list[str]) -> Graph:
    """What a graph becomes when the schema changes besides: rows that only follow it are not told.

    Before, a row is in the columns of its own schema, and in a table of its own name.
    """
    seen = {key: dict(rows) for key, rows in seen_after(start, names).items()}
    old_keys = {new: old for old, new in SHELF_TO_RACK.items()} if "rename type" in names else {}
    for change in changes:
        key, id = change.table_key, change.id
        assert row_of(change.before) == start.get(old_keys.get(key, key), {}).get(id)
        rows = seen.setdefault(key, {})
        before, after = rows.pop(id, None), row_of(change.after)
        assert before != after
        if after is not None:
            rows[id] = after
    return without_empty(seen)


def row_of(values: Mapping[str, Any] | None) -> Row | None:
    return None if values is None else as_row({k: v for k, v in values.items() if k != "id"})


def inverse(change: EntityChange) -> tuple[object, ...]:
    ops = {ChangeOp.INSERT: ChangeOp.DELETE, ChangeOp.DELETE: ChangeOp.INSERT}
    op = ops.get(change.op, change.op)
    return (change.table_key, change.id, op, change.after, change.before, change.properties)


def plain(change: EntityChange) -> tuple[object, ...]:
    op, before, after = change.op, change.before, change.after
    return (change.table_key, change.id, op, before, after, change.properties)


def check_told(changes: ChangeSet, before: Graph, after: Graph) -> None:
    """Order, counts, ends and properties of a diff are those of its rows."""
    order = [(c.kind is EntityKind.EDGE, c.type_name, c.id) for c in changes.changes]
    assert order == sorted(set(order))
    counts = {op: sum(c.op is op for c in changes.changes) for op in ChangeOp}
    stats = changes.stats
    assert (stats.inserts, stats.updates, stats.deletes) == tuple(counts[op] for op in ChangeOp)
    assert stats.types_affected == tuple(sorted({c.type_name for c in changes.changes}))
    assert sum(table.total for table in stats.tables) == len(changes.changes)
    for change in changes.changes:
        assert change.table_key == f"{change.kind}:{change.type_name}"
        old = before.get(change.table_key, {}).get(change.id)
        new = after.get(change.table_key, {}).get(change.id)
        assert old != new
        if old is not None and new is not None:
            assert set(change.properties) == {name for name in new if old[name] != new[name]}
        ends = change.endpoints
        shown = None if ends is None else {"src": f'"{ends.src}"', "dst": f'"{ends.dst}"'}
        kept = new or old or {}
        assert shown == ({n: kept[n] for n in ("src", "dst")} if "src" in kept else None)


@pytest.mark.parametrize("seed", seeds(0, 1))
def test_applied_to_its_start_it_gives_its_end(tmp_path: Path, seed: int) -> None:
    made = history(tmp_path, seed)
    og = made.og
    ids = sorted({c.graph_commit_id for name in BRANCHES for c in og.list_commits(name)})
    for _ in range(8):
        start, end = (ReadTarget(snapshot_id=made.random.choice(ids)) for _ in "xy")
        before, after = graph_of(og, start), graph_of(og, end)
        changes = og.diff_between(start, end)
        assert replay(changes.changes, before) == without_empty(after)
        check_told(changes, before, after)
        back = og.diff_between(end, start)
        assert [plain(c) for c in back.changes] == [inverse(c) for c in changes.changes]
        assert tuple(og.iter_diff(start, end)) == changes.changes


@pytest.mark.parametrize("seed", seeds(20, 1))
def test_every_commit_is_its_changes(tmp_path: Path, seed: int) -> None:
    og = history(tmp_path, seed).og
    for commit in og.list_commits("left"):
        if commit.parent_commit_id is not None:
            start, end = (
                graph_of(og, ReadTarget(snapshot_id=id))
                for id in (commit.parent_commit_id, commit.graph_commit_id)
            )
            changes = og.commit_changes(commit.graph_commit_id)
            assert replay(changes.changes, start) == without_empty(end)


@pytest.mark.parametrize("seed", seeds(40, 1))
def test_upkeep_changes_no_row(tmp_path: Path, seed: int) -> None:
    made = history(tmp_path, seed)
    og = made.og
    for branch in BRANCHES:
        head = og.head_commit_id_for_branch(branch)
        og.ensure_indices(branch=branch)
        og.optimize(branch=branch)
        changes = og.diff_commits(head, og.head_commit_id_for_branch(branch))
        assert changes.changes == ()
        assert changes.stats.tables == ()


@pytest.mark.parametrize("seed", seeds(60, 1))
def test_the_feed_from_genesis_gives_the_head(tmp_path: Path, seed: int) -> None:
    made = history(tmp_path, seed, steps=12)
    og = made.og
    for branch in BRANCHES:
        genesis = og.list_commits(branch)[-1]
        assert genesis.parent_commit_id is None
        cursor = og.cursor_at(genesis.graph_commit_id, branch=branch)
        graph: Graph = {}
        is_caught_up = False
        while not is_caught_up:
            page = og.poll(cursor, branch=branch, most_changes=made.random.choice((1, 10, 1000)))
            for block in page.blocks:
                graph = replay(block.changes.changes, graph)
                state = ReadTarget(snapshot_id=block.commit.graph_commit_id)
                assert graph == without_empty(graph_of(og, state))
            assert page.blocks or page.is_caught_up
            cursor, is_caught_up = page.cursor, page.is_caught_up
        assert graph == without_empty(graph_of(og, branch))
        assert og.poll(cursor, branch=branch).blocks == ()


@pytest.mark.parametrize("seed", seeds(80, 1))
def test_rows_that_only_follow_the_schema_are_not_told(tmp_path: Path, seed: int) -> None:
    made = World(Omnigraph.init(str(tmp_path / "graph"), SCHEMA), seed)
    made.fill("main")
    start = graph_of(made.og)
    made.og.branch_create("other")
    made.edit("other", 1)
    names = [name for name in REFORMS if made.random.random() < 0.5 and name != "tighten range"]
    made.og.schema_apply(schema_text(names), branch="other", allow_data_loss=True)
    steps = made.og.diff_between("main", "other")
    assert bool(steps.stats.schema_steps) == bool(names)
    for _ in range(3):
        changes = made.og.diff_between("main", "other").changes
        assert across(changes, start, names) == without_empty(graph_of(made.og, "other"))
        made.retouch("other", LATER_VALUES)
