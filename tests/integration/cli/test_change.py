"""`omnigraph change`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

QUERIES = """\
query add($sku: String, $price: F64?) {
  insert Part { sku: $sku, price: $price }
}

query drop($sku: String) {
  delete Part where sku = $sku
}
"""


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "stock.gq").write_text(QUERIES)
    return folder


def test_a_line_for_people(folder: Path, full: Omnigraph) -> None:
    done = omnigraph(
        "change", "stock", "--query", "stock.gq", "--name", "drop", "--params", '{"sku": "M8"}',
        "--as", "ada", folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "changed branch main with drop: 1 node, 1 edge",
        "actor_id: ada",
        f"commit_id: {full.head_commit_id_for_branch()}",
    ]
    assert full.entity_at("node:Part", "M8", version=3) is None


def test_a_document_for_machines(folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    (folder / "params.json").write_text('{"sku": "Mü", "price": 2}')
    done = omnigraph(
        "change", "--uri", "stock", "--query", "stock.gq", "--name", "add", "--branch", "review",
        "--params-file", "params.json", "--json", folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    commit = full.snapshot("review").commit
    expected = {
        "branch": "review",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": None,
        "commit_id": commit.graph_commit_id,
        "manifest_version": commit.manifest_version,
        "repeated": False,
    }
    assert list(json.loads(done.stdout).items()) == list(expected.items())
    assert full.snapshot("review").table("node:Part").row_count == 3
    assert full.snapshot().table("node:Part").row_count == 2


def test_nothing_to_change_is_no_commit(folder: Path, full: Omnigraph) -> None:
    before = full.snapshot()
    done = omnigraph(
        "change", "stock", "--query", "stock.gq", "--name", "drop", "--params", '{"sku": "none"}',
        folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (
        0,
        "changed branch main with drop: 0 nodes, 0 edges\n",
    )
    assert full.snapshot() == before


def test_a_repeat_under_one_key_changes_once(folder: Path, full: Omnigraph) -> None:
    arguments = (
        "change", "stock", "--query", "stock.gq", "--name", "drop", "--params", '{"sku": "M8"}',
        "--idempotency-key", "monday",
    )  # fmt: skip
    first = omnigraph(*arguments, folder=folder)
    again = omnigraph(*arguments, folder=folder)
    assert first.stdout.startswith("changed branch main with drop: 1 node, 1 edge\n")
    assert again.stdout == f"already {first.stdout}"
    assert len(full.list_commits()) == 3


def test_another_head_than_expected(folder: Path, full: Omnigraph) -> None:
    arguments = (
        "change", "stock", "--query", "stock.gq", "--name", "add", "--params", '{"sku": "M12"}',
        "--if-commit",
    )  # fmt: skip
    head = full.head_commit_id_for_branch()
    assert omnigraph(*arguments, head, folder=folder).returncode == 0
    late = omnigraph(*arguments, head, folder=folder)
    assert (late.returncode, late.stdout) == (4, "")
    assert f"expected {head}" in late.stderr


def test_a_wrong_query_is_shown_where_it_stands(folder: Path) -> None:
    (folder / "wrong.gq").write_text('query q() {\n  insert Part { sku: "a", prize: 1.0 }\n}\n')
    done = omnigraph("change", "stock", "--query", "wrong.gq", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: wrong.gq:2:27: error T11")
    assert "hint: did you mean `price`?" in done.stderr


def test_rows_that_break_a_rule(folder: Path, full: Omnigraph) -> None:
    before = full.snapshot()
    done = omnigraph(
        "change", "stock", "--query", "stock.gq", "--name", "add",
        "--params", '{"sku": "M12", "price": -1}', folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: statement 1: @range violation on Part.price")
    assert full.snapshot() == before


def test_every_parameter_problem_is_told(folder: Path) -> None:
    done = omnigraph(
        "change", "stock", "--query", "stock.gq", "--name", "add",
        "--params", '{"sk": "M12", "price": "dear"}', folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "param 'sku': missing" in done.stderr
    assert "param 'price': " in done.stderr
    assert "param 'sk': not declared by the query; did you mean `sku`?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--query", "stock.gq"], 2, "URI must be provided"),
        (["stock"], 1, "exactly one query"),
        (["stock", "--query", "stock.gq", "--params", "{}", "--params-file", "p"], 2, "exclude"),
        (["stock", "--query", "stock.gq"], 1, "`add`, `drop`"),
        (["stock", "--query", "stock.gq", "--name", "drip"], 1, "did you mean `drop`?"),
        (["stock", "--query", "stock.gq", "--name", "add", "--params", "[1]"], 1, "--params: exp"),
        (["stock", "--query", "none.gq"], 1, "query file 'none.gq' not found"),
        (["stock", "--query", "stock.gq", "--name", "add", "--params-file", "p"], 1, "cannot read"),
        (["stock", "--query", "read.gq"], 1, "read"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], code: int, text: str) -> None:
    (folder / "read.gq").write_text("query all() { match { $p: Part } return { $p.sku } }")
    done = omnigraph("change", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
