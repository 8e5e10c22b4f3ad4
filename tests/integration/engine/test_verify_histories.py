"""Verify finds nothing wrong with what merges, migrations, runs and their kin leave behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.verifying.model import Severity
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.manifest.image import GraphCommit

SCHEMA = """
node Part {
  sku: String @key
  name: String? @index
  stock: I64?
  drawing: Blob?
}

node Bin { code: String @key }

edge Holds: Bin -> Part { count: I64? }
"""
LATER = SCHEMA.replace("stock: I64?", 'amount: I64? @rename_from("stock")\n  weight: F64?')


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    og = Omnigraph.init(str(tmp_path), SCHEMA)
    put(og, "a", "b", "c")
    og.load(b'{"type":"Bin","data":{"code":"A1"}}', mode="merge")
    hold(og, "a")
    return og


def put(og: Omnigraph, *skus: str, branch: str = "main", stock: int = 1) -> GraphCommit:
    data = [{"sku": sku, "name": f"part {sku}", "stock": stock} for sku in skus]
    text = "\n".join(json.dumps({"type": "Part", "data": item}) for item in data)
    commit = og.load(text.encode(), mode="merge", branch=branch).commit
    assert commit is not None
    return commit


def hold(og: Omnigraph, sku: str, branch: str = "main") -> None:
    edge = {"edge": "Holds", "from": "A1", "to": sku, "data": {"id": f"A1-{sku}"}}
    og.load(json.dumps(edge).encode(), mode="merge", branch=branch)


def check(og: Omnigraph) -> None:
    """Now, from another handle, and after everything old is gone."""
    for handle in (og, Omnigraph.open(og.uri)):
        found = handle.verify(is_deep=True).findings
        assert [item.render() for item in found if item.severity is Severity.ERROR] == []
    clean_up(og, keep=1)
    og.verify(is_deep=True).require_sound()


def test_merges(og: Omnigraph) -> None:
    og.branch_create("review")
    put(og, "a", "d", branch="review", stock=2)
    hold(og, "d", "review")
    put(og, "b", stock=3)
    og.optimize()
    og.branch_merge("review")
    put(og, "e", branch="review")
    og.branch_merge("main", into="review")
    og.branch_merge("review")
    og.optimize()
    og.optimize(branch="review", include_inherited=True)
    check(og)


def test_a_fast_forward(og: Omnigraph) -> None:
    og.branch_create("review")
    put(og, "d", branch="review")
    og.branch_merge("review", delete_branch=True)
    og.optimize()
    check(og)


def test_commits_taken_back_and_repeated(og: Omnigraph) -> None:
    first = put(og, "d")
    put(og, "e")
    og.branch_create("review", source=ReadTarget(snapshot_id=first.graph_commit_id))
    picked = put(og, "f", branch="review")
    og.cherry_pick(picked.graph_commit_id)
    og.revert(first.graph_commit_id)
    og.branch_reset("review", ReadTarget(branch="main"), confirm=True)
    check(og)


def test_migrations(og: Omnigraph) -> None:
    og.branch_create("review")
    og.schema_apply(LATER, branch="review")
    put(og, "d")
    og.optimize(branch="review")
    og.branch_merge("review")
    check(og)
    og.schema_apply("node Part { sku: String @key }", allow_data_loss=True)
    check(og)


def test_runs(og: Omnigraph) -> None:
    run = og.begin_run()
    put(og, "d", branch=run.run_branch)
    put(og, "e")
    og.publish_run(run.run_id)
    lost = og.begin_run()
    put(og, "f", branch=lost.run_branch)
    og.abort_run(lost.run_id)
    og.begin_run()
    check(og)
