"""Drops with data loss: values leave the files, older versions go, and who keeps them is told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine import purging
from omnigraph_core.errors import BranchNotFound, SnapshotNotFound
from tests.integration.evolve.sensors import (
    SCHEMA,
    SENSORS,
    apply,
    changed,
    column,
    load,
    new_graph,
)
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

SECRET = "a secret that is to be forgotten"
NO_NOTE = ("  note: String?\n", "")
NO_NEAR = ("edge Near: Site -> Site", "")


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    og = new_graph(tmp_path)
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "note": SECRET}})
    load(og, {"edge": "Near", "from": "a", "to": "b"})
    return og


def files_with_secret(root: Path) -> set[str]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)) for path in found if SECRET.encode() in path.read_bytes()}


def live_files(og: Omnigraph, table_key: str) -> set[str]:
    table = og.table(og.snapshot(), table_key)
    fragments = table.dataset.get_fragments()
    names = [file.path for fragment in fragments for file in fragment.metadata.files]
    return {f"{table.location}/data/{name}" for name in names}


def test_a_soft_drop_keeps_the_values(og: Omnigraph, tmp_path: Path) -> None:
    apply(og, NO_NOTE)
    assert files_with_secret(tmp_path) & live_files(og, "node:Sensor")


def test_values_leave_the_files_of_the_new_version(og: Omnigraph, tmp_path: Path) -> None:
    before = og.snapshot()
    kept = column(og, "node:Sensor", "text")
    result = og.schema_apply(changed(NO_NOTE, NO_NEAR), allow_data_loss=True)
    assert [report.to_json()["mode"] for report in result.steps] == ["hard", "hard"]
    assert not files_with_secret(tmp_path) & live_files(og, "node:Sensor")
    assert column(og, "node:Sensor", "text") == kept
    assert result.purge is not None
    assert result.purge.problem is None
    # Everything is young: it goes with a later cleanup.
    assert result.purge.versions_removed == 0
    assert result.purge.held_by == (f"{before.manifest_version} older versions of branch main",)
    assert files_with_secret(tmp_path)
    clean_up(og, keep=1)
    assert not files_with_secret(tmp_path)
    with pytest.raises(SnapshotNotFound):
        og.snapshot_at_version(before.manifest_version)
    assert column(og, "node:Sensor", "text") == kept


def test_who_still_has_the_data_is_told_and_keeps_it(og: Omnigraph, tmp_path: Path) -> None:
    og.branch_create("review")
    og.branch_create("clean")
    apply(og, NO_NOTE, NO_NEAR, branch="clean", allow_data_loss=True)
    og.tag_create("v1")
    with og.hold(og.snapshot(), purpose="export", lasting=timedelta(minutes=1)):
        result = og.schema_apply(changed(NO_NOTE, NO_NEAR), allow_data_loss=True)
    assert result.purge is not None
    held = [name for name in result.purge.held_by if "older" not in name]
    assert held == ["branch review", "tag v1", "reader export"]
    clean_up(og, keep=1)
    assert files_with_secret(tmp_path)
    assert column(og, "node:Sensor", "note", "review")["s1"] == SECRET
    assert og.schema_show("review").source == SCHEMA


def test_without_drops_nothing_is_purged(og: Omnigraph) -> None:
    versions = og.snapshot().manifest_version
    result = og.schema_apply(changed(("  reading: F32", "  reading: F64")), allow_data_loss=True)
    assert result.purge is None
    assert og.snapshot_at_version(versions - 1).tables


def test_a_branch_has_the_data_however_it_changed_the_property(og: Omnigraph) -> None:
    counted = ("  count: I32?\n", "")
    for name in ("wide", "soft", "none"):
        og.branch_create(name)
    apply(og, ("  count: I32?", "  count: I64?"), branch="wide")
    og.optimize(branch="wide")  # from here on the old column is in none of its files
    apply(og, counted, branch="soft")
    apply(og, counted, branch="none", allow_data_loss=True)
    result = og.schema_apply(changed(counted), allow_data_loss=True)
    assert result.purge is not None
    held = [name for name in result.purge.held_by if "older" not in name]
    assert held == ["branch soft", "branch wide"]


def test_a_purge_that_fails_leaves_the_change_in_force(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise BranchNotFound("`main` was deleted meanwhile")

    monkeypatch.setattr(purging, "cleanup", gone)
    result = og.schema_apply(changed(NO_NOTE), allow_data_loss=True)
    assert result.applied
    assert result.purge is not None
    assert result.purge.problem is not None
    assert "deleted meanwhile" in result.purge.problem


def test_a_later_hard_drop_takes_out_what_was_dropped_softly(og: Omnigraph, tmp_path: Path) -> None:
    apply(og, NO_NOTE)
    apply(og, ("  note: String?\n", "  gone: String?\n"))
    assert files_with_secret(tmp_path) & live_files(og, "node:Sensor")
    apply(og, NO_NOTE, allow_data_loss=True)
    assert not files_with_secret(tmp_path) & live_files(og, "node:Sensor")
