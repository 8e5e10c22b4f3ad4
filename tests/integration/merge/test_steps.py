"""What images tell of the steps between two states: whether every id that was there still is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.history.context import GraphContext
from omnigraph_core.merge.steps import Steps
from omnigraph_core.storage.session import open_store
from tests.integration.merge.small_graph import PART, change, drop, evolve, new_graph, part, put

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.manifest.snapshot import Snapshot

DEAR, CHEAP = 1_000, 1


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


@pytest.fixture
def og(root: str) -> Omnigraph:
    return new_graph(root)


def kept(root: str, before: Snapshot, after: Snapshot, worth: int = DEAR) -> bool:
    steps = Steps(GraphContext(open_store(root)), before, after)
    return steps.keep_ids(before.table(PART), after.table(PART), worth=worth)


def test_one_step(og: Omnigraph, root: str) -> None:
    before = og.snapshot()
    og.branch_create("side")
    put(og, "side", part("p1", stock=5), part("p9"))
    assert kept(root, before, og.snapshot("side"), CHEAP)
    og.branch_create("gone")
    drop(og, "gone", "p1")
    assert not kept(root, before, og.snapshot("gone"))
    og.branch_create("anew")
    og.load(b'{"type": "Part", "data": {"sku": "p1"}}', branch="anew", mode="overwrite")
    assert not kept(root, before, og.snapshot("anew"))


def test_nothing_is_known_of_no_step(og: Omnigraph, root: str) -> None:
    before = og.snapshot()
    assert not kept(root, before, before)


def test_several_steps_are_looked_at_if_that_is_worth_it(og: Omnigraph, root: str) -> None:
    before = og.snapshot()
    og.branch_create("side")
    put(og, "side", part("p1", stock=5))
    change(og, "side", 'update Part set { stock: 7 } where sku = "p2"')
    og.ensure_indices(branch="side")
    put(og, "side", part("p9"))
    assert kept(root, before, og.snapshot("side"))
    assert not kept(root, before, og.snapshot("side"), CHEAP)
    drop(og, "side", "p1")
    put(og, "side", part("p1"))
    assert not kept(root, before, og.snapshot("side"))


def test_a_merge_tells_nothing(og: Omnigraph, root: str) -> None:
    before = og.snapshot()
    og.branch_create("side")
    drop(og, "side", "p1")
    put(og, "main", part("p2", stock=3))
    og.branch_merge("side")
    put(og, "main", part("p3", stock=3))
    assert not kept(root, before, og.snapshot())


def test_other_lines_tell_nothing(og: Omnigraph, root: str) -> None:
    og.branch_create("side")
    put(og, "main", part("p1", stock=5))
    put(og, "side", part("p2", stock=5))
    assert not kept(root, og.snapshot(), og.snapshot("side"))
    after = og.snapshot()
    put(og, "main", part("p1", stock=6))
    assert not kept(root, og.snapshot(), after), "backwards"


def test_a_change_of_the_schema_tells_nothing(og: Omnigraph, root: str) -> None:
    before = og.snapshot()
    evolve(og, "main", ("name: String?", "name: String?\n  mark: String?"))
    put(og, "main", part("p1", mark="x"))
    assert not kept(root, before, og.snapshot())
