"""Indexes: what the schema asks for is built once, published as one commit, and reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.indexing import IndexState
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound
from tests.support.graphs import HOLDS, PART, append_pair, append_parts, content

if TYPE_CHECKING:
    from omnigraph_core.engine.indexing import IndexReport

EVERY_KIND = """
node Part {
  sku: String @key
  note: String? @index
  stock: I64? @index
  kind: enum(bolt, nut)? @index
  is_sold: Bool? @index
  tags: [String]?
  shape: Vector(4)? @index
  @index(tags)
}
edge Needs: Part -> Part { since: Date? @index }
"""


def by_column(reports: tuple[IndexReport, ...], table_key: str) -> dict[str, IndexReport]:
    return {report.column: report for report in reports if report.table_key == table_key}


def test_every_declared_index_is_built_by_one_commit(og: Omnigraph) -> None:
    append_pair(og, ["a", "b"])
    before = og.snapshot()
    rows = content(og, before)
    pending = by_column(og.index_status(), PART)
    assert {report.state for report in pending.values()} == {IndexState.PENDING}
    reports = og.ensure_indices(actor="ann")
    after = og.snapshot()
    assert after.manifest_version == before.manifest_version + 1
    assert (after.commit.operation, after.commit.actor_id) == ("ensure_indices", "ann")
    assert content(og, after) == rows
    parts = by_column(reports, PART)
    assert {name: report.kind for name, report in parts.items()} == {
        "id": "BTREE", "sku": "INVERTED", "name": "INVERTED",
    }  # fmt: skip
    for report in (*parts.values(), *by_column(reports, HOLDS).values()):
        assert (report.state, report.is_built) == (IndexState.COMPLETE, True)
        assert report.covered_rows == report.rows == 2
        assert (report.segments, report.is_inherited) == (1, False)


def test_a_second_time_there_is_nothing_to_do(og: Omnigraph) -> None:
    append_pair(og, ["a", "b"])
    og.ensure_indices()
    before = og.snapshot()
    reports = og.ensure_indices()
    assert og.snapshot() == before
    assert not any(report.is_built for report in reports)
    assert reports == og.index_status()


def test_rows_added_since_are_covered_by_the_next_call(og: Omnigraph) -> None:
    append_parts(og, ["a", "b"])
    og.ensure_indices()
    append_parts(og, ["c"])
    partial = by_column(og.index_status(), PART)["id"]
    assert (partial.state, partial.rows, partial.covered_rows) == (IndexState.PARTIAL, 3, 2)
    complete = by_column(og.ensure_indices(), PART)["id"]
    assert (complete.state, complete.covered_rows, complete.segments) == (IndexState.COMPLETE, 3, 2)


def test_an_empty_graph_needs_no_commit(og: Omnigraph) -> None:
    before = og.snapshot()
    reports = og.ensure_indices()
    assert og.snapshot() == before
    assert {(report.state, report.rows) for report in reports} == {(IndexState.PENDING, 0)}


def test_tables_of_another_branch_are_left_to_it(og: Omnigraph) -> None:
    append_pair(og, ["a", "b"])
    og.branch_create("dev")
    before = og.snapshot("dev")
    reports = og.ensure_indices(branch="dev")
    assert og.snapshot("dev") == before
    assert all(report.is_inherited and not report.is_built for report in reports)
    append_parts(og, ["c"], branch="dev")
    own = by_column(og.ensure_indices(branch="dev"), PART)["id"]
    assert (own.state, own.is_inherited, own.is_built) == (IndexState.COMPLETE, False, True)
    assert by_column(og.index_status("main"), PART)["id"].state is IndexState.PENDING


def test_a_branch_that_is_not_there(og: Omnigraph) -> None:
    with pytest.raises(BranchNotFound):
        og.ensure_indices(branch="gone")


def test_every_kind_of_index(graph_root: str) -> None:
    og = Omnigraph.init(graph_root, EVERY_KIND)
    records = [
        {
            "type": "Part",
            "data": {
                "sku": f"p{number}",
                "note": f"part number {number}",
                "stock": number,
                "kind": "bolt" if number % 2 else "nut",
                "is_sold": number % 3 == 0,
                "tags": ["steel", f"t{number % 4}"],
                "shape": [1.0, number, 0.5, 2.0],
            },
        }
        for number in range(12)
    ]
    edges = [
        {"edge": "Needs", "from": f"p{number}", "to": "p0", "data": {"since": "2026-01-01"}}
        for number in range(1, 12)
    ]
    og.load("\n".join(map(json.dumps, [*records, *edges])).encode())
    reports = og.ensure_indices()
    assert {name: report.kind for name, report in by_column(reports, PART).items()} == {
        "id": "BTREE",
        "sku": "INVERTED",
        "note": "INVERTED",
        "stock": "BTREE",
        "kind": "BITMAP",
        "is_sold": "BITMAP",
        "tags": "LABEL_LIST",
        "shape": "IVF_FLAT",
    }
    assert set(by_column(reports, "edge:Needs")) == {"id", "src", "dst", "since"}
    assert {report.state for report in reports} == {IndexState.COMPLETE}
    first = reports[0].to_json()
    assert (first["state"], first["covered_rows"], first["is_built"]) == ("complete", 11, True)
