"""Schema changes: the same on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConstraintViolation, SchemaApplyLocked
from omnigraph_core.history.locks import schema_lock, try_read_lock
from tests.integration.evolve.sensors import SENSORS, apply, changed, column, load, new_graph

if TYPE_CHECKING:
    from omnigraph_core.evolve.report import SchemaApplyResult

EDITS = (
    ("  reading: F32", "  reading: F64"),
    ("  note: String?", '  remark: String @rename_from("note") @default("none")'),
    ("  count: I32?\n", ""),
    ("  text: String\n", "  text: String\n  photo: Blob?\n"),
    ("node Site {", 'node Place @rename_from("Site") {'),
    ("edge At: Sensor -> Site", "edge At: Sensor -> Place"),
    ("edge Near: Site -> Site", "node Batch { code: String @key }"),
)


@pytest.fixture
def og(graph_root: str) -> Omnigraph:
    return new_graph(graph_root)


def kinds(result: SchemaApplyResult) -> list[str]:
    return [str(report.step.kind) for report in result.steps]


def test_everything_changes_with_one_commit(og: Omnigraph) -> None:
    before = og.snapshot()
    result = og.schema_apply(changed(*EDITS), actor="ann")
    assert kinds(result) == [
        "add_type", "rename_type", "add_property", "widen_property", "rename_property",
        "tighten_nullability", "update_default", "drop_property", "drop_type",
    ]  # fmt: skip
    other = Omnigraph.open(og.uri)
    after = other.snapshot()
    assert (result.applied, result.commit) == (True, after.commit)
    assert after.manifest_version == before.manifest_version + 1
    assert set(after.tables) == {"node:Batch", "node:Place", "node:Sensor", "edge:At"}
    assert column(other, "node:Sensor", "remark") == {"s1": "one", "s2": "none", "s3": "one"}
    assert column(other, "node:Sensor", "scan")["s1"] == b"\x00\x01"
    assert set(column(other, "node:Place", "code")) == {"a", "b"}
    load(
        other,
        {"type": "Batch", "data": {"code": "x"}},
        {"edge": "At", "from": "s3", "to": "a", "data": {}},
    )
    assert og.schema_plan(changed(*EDITS)).steps == ()
    assert og.table(before, "node:Sensor").read(["note"]).num_rows == 3


def test_rows_that_do_not_allow_it(og: Omnigraph) -> None:
    before = og.snapshot()
    with pytest.raises(ConstraintViolation, match="'s2'"):
        apply(og, ("  note: String?", "  note: String"))
    assert Omnigraph.open(og.uri).snapshot() == before


def test_a_branch_of_its_own_and_a_hard_drop(og: Omnigraph) -> None:
    og.branch_create("review")
    result = og.schema_apply(
        changed(("  note: String?\n", "")), branch="review", allow_data_loss=True
    )
    assert result.purge is not None
    assert result.purge.problem is None
    assert "branch main" in result.purge.held_by
    assert column(og, "node:Sensor", "note")["s1"] == "one"
    data = {name: value for name, value in SENSORS[0].items() if name != "note"}
    load(og, {"type": "Sensor", "data": data}, branch="review")


def test_the_lock(og: Omnigraph) -> None:
    store = og._context.store
    with schema_lock(store, "main", actor="ann"), pytest.raises(SchemaApplyLocked, match="ann"):
        apply(Omnigraph.open(og.uri), *EDITS)
    assert try_read_lock(store, "main") is None
    assert len(apply(og, *EDITS)) == 9
