"""Branches, tags, merges, runs and schemas behind a server are those of a graph at hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import AlreadyExists, MergeConflicts, OmnigraphError, TagNotFound
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome, MergeSide
from tests.integration.client.conftest import SCHEMA, Pair, lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.merge.model import MergeResult


def part(sku: str, stock: int) -> dict[str, object]:
    return {"type": "Part", "data": {"sku": sku, "stock": stock}}


def put(graph: Omnigraph, branch: str, *rows: dict[str, object]) -> str:
    commit = graph.load(lines(*rows), branch=branch, embed="off", actor="tester").commit
    assert commit is not None
    return commit.graph_commit_id


def test_branches_and_tags(pair: Pair) -> None:
    local, remote = pair.local, pair.remote
    for name, source in (
        ("review/2026 ü", "main"),
        ("of-commit", ReadTarget(snapshot_id=local.head_commit_id_for_branch())),
    ):
        made = remote.branch_create(name, source=source)
        assert made == local.branch_get(name) == remote.branch_get(name)
    with pytest.raises(AlreadyExists):
        remote.branch_create("of-commit")
    tag = remote.tag_create("r/1", "review/2026 ü")
    assert (tag,) == local.tag_list() == remote.tag_list()
    remote.branch_create("of-tag", source=ReadTarget(tag="r/1"))
    assert remote.branch_list() == local.branch_list()
    remote.branch_delete("of-tag")
    remote.branch_delete("review/2026 ü")
    assert "review/2026 ü" not in local.branch_list()
    remote.tag_delete("r/1")
    with pytest.raises(TagNotFound):
        remote.tag_delete("r/1")


class World:
    """Two pairs of branches in the same state: what is done to one is done to the other."""

    def __init__(self, pair: Pair, name: str) -> None:
        self.pair = pair
        self.names = (f"{name}-one", f"{name}-two")
        for branch in self.names:
            pair.fork(branch)
            put(pair.local, branch, part("c", 1), part("d", 1))
            pair.local.branch_create(f"{branch}-work", source=branch)

    def put(self, suffix: str, *rows: dict[str, object]) -> tuple[str, str]:
        one, two = (put(self.pair.local, f"{name}{suffix}", *rows) for name in self.names)
        return one, two

    def both(self, call: Callable[[Any, str], MergeResult]) -> MergeResult:
        local = call(self.pair.local, self.names[0])
        remote = call(self.pair.remote, self.names[1])
        assert remote.outcome is local.outcome
        for name in ("tables", "conflicts", "resolved", "is_dry_run", "is_schema_changed"):
            assert getattr(remote, name) == getattr(local, name)
        assert (remote.commit is None) == (local.commit is None)
        assert self._rows(self.names[0]) == self._rows(self.names[1])
        if remote.commit is not None:
            assert remote.commit.operation == local.commit.operation
            assert remote.commit == self.pair.remote.get_commit(remote.commit.graph_commit_id)
        return remote

    def raised(self, call: Callable[[Any, str], Any]) -> OmnigraphError:
        problems = []
        for graph, name in zip((self.pair.local, self.pair.remote), self.names, strict=True):
            with pytest.raises(OmnigraphError) as problem:
                call(graph, name)
            problems.append(problem.value)
        local, remote = problems
        assert type(remote) is type(local)
        assert remote.details() == local.details()
        assert _alike(remote) == _alike(local)
        return remote

    def _rows(self, branch: str) -> list[Any]:
        found = self.pair.local.query(
            branch, "query q() { match { $p: Part } return { $p.sku, $p.stock } order { $p.sku } }"
        )
        return found.to_pylist()


def _alike(problem: OmnigraphError) -> str:
    return re.sub(r"-one|-two|[0-9A-Z]{26}", "…", str(problem))


def test_merges(pair: Pair) -> None:
    world = World(pair, "merge")
    world.put("-work", part("e", 1))
    done = world.both(lambda graph, name: graph.branch_merge(f"{name}-work", into=name))
    assert done.outcome is MergeOutcome.FAST_FORWARD
    world.both(lambda graph, name: graph.branch_merge(f"{name}-work", into=name))
    world.put("-work", part("c", 2), part("d", 2))
    world.put("", part("c", 3), part("d", 3))
    tried = world.both(
        lambda graph, name: graph.branch_merge(f"{name}-work", into=name, dry_run=True)
    )
    assert len(tried.conflicts) == 2
    problem = world.raised(lambda graph, name: graph.branch_merge(f"{name}-work", into=name))
    assert isinstance(problem, MergeConflicts)
    assert len(problem.conflicts) == 2
    world.raised(lambda graph, name: graph.branch_merge(f"{name}-work", into=name, strategy="none"))
    done = world.both(
        lambda graph, name: graph.branch_merge(
            f"{name}-work",
            into=name,
            resolve=MergeSide.OURS,
            choices={("node:Part", "c"): "theirs"},
            delete_branch=True,
            if_commit=graph.head_commit_id_for_branch(name),
        )
    )
    assert (done.outcome, done.resolved, done.is_source_deleted) == (MergeOutcome.MERGED, 2, True)


def test_single_commits(pair: Pair) -> None:
    world = World(pair, "single")
    picked = dict(zip(world.names, world.put("-work", part("c", 5)), strict=True))
    world.both(lambda graph, name: graph.cherry_pick(picked[name], into=name, dry_run=True))
    done = world.both(lambda graph, name: graph.cherry_pick(picked[name], into=name))
    assert done.outcome is MergeOutcome.MERGED
    world.both(lambda graph, name: graph.revert(graph.head_commit_id_for_branch(name), branch=name))
    world.raised(lambda graph, name: graph.branch_reset(name, ReadTarget(branch="main")))
    for graph, name in zip((pair.local, pair.remote), world.names, strict=True):
        made = graph.branch_reset(name, picked[name], confirm=True)
        assert made.graph_commit_id == pair.local.head_commit_id_for_branch(name)
    world.both(lambda graph, name: graph.branch_merge(f"{name}-work", into=name))


def test_runs(pair: Pair) -> None:
    local, remote = pair.local, pair.remote
    target = pair.fork("target")
    run = remote.begin_run(target, operation_hash="nightly")
    assert remote.begin_run(target, operation_hash="nightly") == run
    assert run == local.get_run(run.run_id) == remote.get_run(run.run_id)
    put(local, run.run_branch, part("r", 1))
    preview = remote.preview_run(run.run_id)
    assert preview.is_dry_run
    assert preview == local.preview_run(run.run_id)
    done = remote.publish_run(run.run_id, strategy="property")
    assert done.status is RunStatus.PUBLISHED
    assert done == remote.publish_run(run.run_id) == local.get_run(run.run_id)
    given_up, failed = remote.begin_run(target), remote.begin_run(target)
    assert remote.abort_run(given_up.run_id).status is RunStatus.ABORTED
    assert remote.fail_run(failed.run_id).status is RunStatus.FAILED
    listed = remote.list_runs(target_branch=target)
    assert listed == local.list_runs(target_branch=target)
    assert [item.run_id for item in remote.list_runs(status=RunStatus.ABORTED)] == [given_up.run_id]
    with pytest.raises(OmnigraphError, match="aborted"):
        remote.publish_run(given_up.run_id)


CHANGED = (
    SCHEMA.replace("weight: F64?", 'mass: F64? @rename_from("weight")')
    .replace("stock: I64? @range(stock, 0..)", "stock: I64? @range(stock, 0..1000)")
    .replace("grade: enum(a, b)?", "grade: enum(a, b, c)?")
    .replace("what is stored", "whatever is stored")
    .replace("code: String @key", 'code: String @key  made: Date @default("2026-01-01")')
    .replace("edge Holds: Bin -> Part {", "edge Holds: Bin -> Part @card(0..9) {")
    .replace("count: I64?", "count: I64?  @index(count)")
    + "node Note { text: String  size: Vector(3)?  @unique(text) }\n"
)


def test_schemas(pair: Pair) -> None:
    branches = [pair.fork("schema-one"), pair.fork("schema-two")]
    sides = list(zip((pair.local, pair.remote), branches, strict=True))
    local, remote = (graph.schema_plan(CHANGED, branch=name) for graph, name in sides)
    assert remote.to_json()["steps"] == local.to_json()["steps"]
    assert [item.step.describe() for item in remote.steps] == [
        item.step.describe() for item in local.steps
    ]
    assert len({type(item.step) for item in remote.steps}) >= 7
    with pytest.raises(OmnigraphError) as problem:
        pair.remote.schema_apply(SCHEMA.replace("weight: F64", "weight: Bool"), branch=branches[1])
    assert type(problem.value).__name__ == "UnsupportedMigration"
    tried = pair.remote.schema_apply(CHANGED, branch=branches[1], dry_run=True)
    assert (tried.applied, tried.is_dry_run, tried.commit) == (False, True, None)
    one, two = (graph.schema_apply(CHANGED, branch=name) for graph, name in sides)
    assert two.applied
    assert two.commit is not None
    assert two.commit.operation == one.commit.operation  # type: ignore[union-attr]
    assert two.steps == one.steps
    assert two.manifest_version == one.manifest_version
    dropped = SCHEMA.replace("weight: F64?", "")
    purges = [
        graph.schema_apply(dropped, branch=name, allow_data_loss=True).purge
        for graph, name in sides
    ]
    assert purges[1] is not None
    assert purges[0] is not None
    assert purges[1].grace_seconds == purges[0].grace_seconds
