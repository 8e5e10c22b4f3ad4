"""Cleanup against a model: what must stay is unchanged, what may go is gone, files included.

Random histories on real tables: writes of every kind through two handles, branches, tags, claims,
staged work that is never published, and cleanups by a third, while days pass.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from omnigraph_core.constants import CLEANUP_GRACE_SECONDS
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchInUse, SnapshotNotFound
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from tests.support.ageing import Clock
from tests.support.examples import examples
from tests.support.graphs import PART, append_pair, content, new_graph, parts, publish
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.dataset import Table

GRACE = CLEANUP_GRACE_SECONDS.value
NAMES = ["a", "a/b", "c"]
Version = tuple[str, int]
"""The incarnation of a branch and a number."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A snapshot as it was when it became the newest of its branch, in seconds of the clock."""

    snapshot: Snapshot
    content: dict[str, list[dict[str, object]]]
    created_at: float


STAGES: dict[TableOperation, Callable[[Table, list[str]], Table | None]] = {
    TableOperation.APPEND: lambda table, ids: stage_append(table, parts(ids)),
    TableOperation.UPSERT: lambda table, ids: stage_upsert(table, parts(ids, stock=1)),
    TableOperation.DELETE: lambda table, ids: stage_delete_keys(table, pa.array(ids)),
    TableOperation.OVERWRITE: lambda table, ids: stage_overwrite(table, parts(ids)),
}
some_ids = st.lists(st.sampled_from("pqrstu"), min_size=1, max_size=3, unique=True)


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="omnigraph-cleanup-"))
        self.patch = pytest.MonkeyPatch()
        self.recorded: dict[Version, Recorded] = {}
        self.branches: dict[str, str] = {"main": "main"}
        self.deleted: dict[str, float] = {}
        self.forks: set[Version] = set()
        self.tags: dict[str, Version] = {}
        self.holds: dict[Version, contextlib.ExitStack] = {}
        self.handles: list[Omnigraph] = []
        self.clock = Clock(self.patch, self.root)
        self.count = 0

    def teardown(self) -> None:
        """Every history ends with a sweep, its tags and claims in force."""
        try:
            if self.handles:
                self.sweep_all()
        finally:
            for hold in self.holds.values():
                hold.close()
            self.patch.undo()
            shutil.rmtree(self.root)

    @initialize()
    def begin(self) -> None:
        """A day-old graph that has indexes, a fragment with deleted rows, and one without."""
        self.handles = [new_graph(str(self.root)), Omnigraph.open(str(self.root))]
        self.record("main")
        self.change("main", TableOperation.APPEND, list("pqrs"))
        self.handle().optimize()
        self.record("main")
        self.change("main", TableOperation.DELETE, ["p"])
        self.change("main", TableOperation.APPEND, ["t"])
        self.wait(30)

    def handle(self) -> Omnigraph:
        """One does most of the work, so the other knows heads that are long superseded."""
        self.count += 1
        return self.handles[self.count % 4 == 0]

    def record(self, branch: str) -> None:
        og = self.handles[0]
        snapshot = og.snapshot(branch)
        key = (snapshot.incarnation, snapshot.manifest_version)
        self.recorded.setdefault(key, Recorded(snapshot, content(og, snapshot), time.time()))

    def draw_old(self, data: st.DataObject) -> Recorded:
        """Any version that is there; one that nothing protects so far, if possible."""
        newest = {max(k for k in self.recorded if k[0] == own) for own, _ in self.recorded}
        plain = self.recorded.keys() - newest - self.forks - self.holds.keys()
        return self.recorded[data.draw(st.sampled_from(sorted(plain or self.recorded)))]

    @rule(data=st.data(), operation=st.sampled_from(list(STAGES)), ids=some_ids)
    def write(self, data: st.DataObject, operation: TableOperation, ids: list[str]) -> None:
        self.change(data.draw(st.sampled_from(sorted(self.branches))), operation, ids)

    def change(self, branch: str, operation: TableOperation, ids: list[str]) -> None:
        og = self.handle()
        snapshot = og.snapshot(branch)
        staged = STAGES[operation](og.table(snapshot, PART), ids)
        if staged is not None:
            publish(og, snapshot, {PART: staged}, operation)
        self.record(branch)

    @rule(data=st.data(), is_optimized=st.booleans())
    def write_several_tables(self, data: st.DataObject, is_optimized: bool) -> None:
        branch = data.draw(st.sampled_from(sorted(self.branches)))
        append_pair(self.handle(), [f"n{self.count}"], branch)
        self.record(branch)
        if is_optimized:
            self.handle().optimize(branch=branch)
            self.record(branch)

    @rule(ids=some_ids)
    def stage_and_forget(self, ids: list[str]) -> None:
        og = self.handle()
        assert stage_append(og.table(og.snapshot(), PART), parts(ids)) is not None

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        free = [name for name in NAMES if name not in self.branches]
        if free:
            source = data.draw(st.sampled_from(sorted(self.branches)))
            self.forked(self.handle().branch_create(free[0], source=source))

    @rule(data=st.data())
    def fork_the_past(self, data: st.DataObject) -> None:
        free = [name for name in NAMES if name not in self.branches]
        commit_id = self.draw_old(data).snapshot.commit.graph_commit_id
        if free:
            source = ReadTarget(snapshot_id=commit_id)
            # A fork's first version holds the commit of another branch, which may be gone.
            with contextlib.suppress(SnapshotNotFound):
                self.forked(self.handle().branch_create(free[0], source=source))

    def forked(self, ref: BranchRef) -> None:
        self.branches[ref.branch] = ref.incarnation
        assert ref.forked_from is not None
        self.forks |= {(ref.forked_from.incarnation, ref.forked_from.manifest_version)}
        self.forks |= {(ref.incarnation, 1)}
        self.record(ref.branch)

    @rule(data=st.data())
    @precondition(lambda self: len(self.branches) > 1)
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.branches.keys() - {"main"})))
        with contextlib.suppress(BranchInUse):
            self.handle().branch_delete(name)
            self.deleted[self.branches.pop(name)] = time.time()

    @rule(data=st.data())
    def tag(self, data: st.DataObject) -> None:
        old = self.draw_old(data)
        target = ReadTarget(snapshot_id=old.snapshot.commit.graph_commit_id)
        with contextlib.suppress(SnapshotNotFound):
            tag = self.handle().tag_create(f"t{len(self.tags)}-{self.count}", target)
            self.tags[tag.tag] = (tag.incarnation, tag.manifest_version)

    @rule(data=st.data())
    @precondition(lambda self: self.tags)
    def untag(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.tags)))
        self.handle().tag_delete(name)
        del self.tags[name]

    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        snapshot = self.draw_old(data).snapshot
        key = (snapshot.incarnation, snapshot.manifest_version)
        if key not in self.holds:
            stack = contextlib.ExitStack()
            held = self.handle().hold(snapshot, purpose="test", lasting=timedelta(days=365))
            stack.enter_context(held)
            self.holds[key] = stack

    @rule(data=st.data())
    @precondition(lambda self: self.holds)
    def release(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.holds)))
        self.holds.pop(key).close()

    @rule(hours=st.sampled_from([1, 5, 13, 30]))
    def wait(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours))

    @rule(
        keep=st.none() | st.integers(1, 4),
        hours=st.none() | st.sampled_from([0, 3, 20, 48]),
    )
    def clean_up(self, keep: int | None, hours: int | None) -> None:
        if keep is None and hours is None:
            return
        self.clock.stamp()
        now, age = time.time(), None if hours is None else timedelta(hours=hours)
        must = self.required(keep, None if hours is None else hours * 3600.0, now)
        Omnigraph.open(str(self.root)).cleanup(keep=keep, older_than=age)
        there = self.check_contents()
        assert must <= there, f"gone: {must - there}"
        extra = there - must - self.forks - self.last_of_deleted()
        assert extra == set(), f"still there: {extra}"
        self.recorded = {key: item for key, item in self.recorded.items() if key in there}

    def last_of_deleted(self) -> set[Version]:
        """The newest version of a catalog goes with the catalog, not before."""
        return {max(key for key in self.recorded if key[0] == own) for own in self.deleted_known()}

    def deleted_known(self) -> set[str]:
        return self.deleted.keys() & {own for own, _ in self.recorded}

    def required(self, keep: int | None, older_than: float | None, now: float) -> set[Version]:
        """The versions that the rules name, fork points left out."""
        must = {*self.tags.values(), *self.holds}
        recent = {key for key, at in self.deleted.items() if at > now - GRACE}
        for incarnation in {*self.branches.values(), *recent}:
            own = sorted(key for key in self.recorded if key[0] == incarnation)
            must |= set(own[-(keep or 1) :])
            for key, successor in itertools.pairwise(own):
                is_young = older_than is not None and self.age(key, now) < older_than
                if is_young or self.age(successor, now) < GRACE:
                    must.add(key)
        return must

    def age(self, key: Version, now: float) -> float:
        return now - self.recorded[key].created_at

    def check_contents(self) -> set[Version]:
        """The versions that exist; each reads as it did when it was new."""
        og, there = Omnigraph.open(str(self.root)), set()
        for key, item in self.recorded.items():
            if self.exists(key):
                there.add(key)
                assert content(og, item.snapshot) == item.content
        return there

    def exists(self, key: Version) -> bool:
        incarnation, number = key
        path = "__manifest" if incarnation == "main" else f"_refs/manifests/{incarnation}"
        return (self.root / path / "_versions" / f"{2**64 - 1 - number:020d}.manifest").exists()

    @rule()
    def sweep_all(self) -> None:
        """Days later only heads, and what tags, claims and forks name, is on the disk."""
        self.clock.advance(timedelta(days=4))
        self.clean_up(1, None)
        self.clock.advance(timedelta(days=4))
        self.clean_up(1, None)
        for location in {*self.root.glob("nodes/*"), *self.root.glob("edges/*")}:
            assert files_of(location) == used_of(location, self.pinned(location)), location
        for og in self.handles:
            for branch, incarnation in self.branches.items():
                newest = max(number for own, number in self.recorded if own == incarnation)
                assert og.snapshot(branch).manifest_version == newest, "it knew an older head"

    def pinned(self, location: Path) -> set[int]:
        return {
            entry.physical_version
            for item in self.recorded.values()
            for entry in item.snapshot.tables.values()
            if self.root / entry.location == location
        }


def files_of(location: Path) -> set[str]:
    """Data, deletions, detached versions, and directories of indexes."""
    found = {
        *location.glob("data/*"),
        *location.glob("_deletions/*"),
        *location.glob("_versions/d*"),
    }
    indexes = {path.parent for path in location.glob("_indices/*/*")}
    return {str(path.relative_to(location)) for path in found | indexes}


def used_of(location: Path, versions: set[int]) -> set[str]:
    """The same as Lance tells it of the versions that are left."""
    used: set[str] = set()
    for version in versions:
        if version < 2**63:
            continue
        used.add(f"_versions/d{version}.manifest")
        dataset = lance.dataset(location, version=version)
        for fragment in dataset.get_fragments():
            metadata: Any = fragment.metadata
            used |= {f"data/{file.path}" for file in metadata.files}
            if metadata.deletion_file is not None:
                used.add(metadata.deletion_file.path(metadata.id))
        for index in dataset.describe_indices():
            used |= {f"_indices/{segment.uuid}" for segment in index.segments}
    return used


def test_cleanup_keeps_what_it_must_and_takes_the_rest() -> None:
    # Shrinking takes minutes on real tables; the steps of a failing history are told as they are.
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    profile = settings(max_examples=examples(20), stateful_step_count=20, phases=phases)
    run_state_machine_as_test(Histories, settings=profile)
