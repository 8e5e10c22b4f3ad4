"""`omnigraph query explain` on a graph: what is expected, and what a run had."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.history.snapshots import ReadTarget
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

HELD = """\
query held($code: String) {
  match { $b: Bin { code: $code }  $b holds $p }
  return { $p.sku }
}
"""
CODE = ("--params", '{"code": "A1"}')


@pytest.fixture
def stock(folder: Path, full: Omnigraph) -> Omnigraph:
    (folder / "held.gq").write_text(HELD)
    return full


def test_a_plan_is_shown_without_parameters(folder: Path, stock: Omnigraph) -> None:
    done = omnigraph("query", "explain", "stock", "--query", "held.gq", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{stock.explain('main', HELD).text}\n"
    assert "scan $b: Bin where $b.code = $code  [~1 rows; key lookup on code]" in done.stdout


def test_a_plan_for_machines(call: Call, stock: Omnigraph) -> None:
    _, output, _ = call("query", "explain", "stock", "-e", HELD, "--json")
    assert json.loads(output) == stock.explain("main", HELD).to_json()


def test_a_schema_alone(call: Call, stock: Omnigraph) -> None:
    given = ("query", "explain", "--schema", "stock.pg", "--query", "held.gq")
    text = call(*given)[1]
    assert text.startswith("query held($code: String)\n  scan $b: Bin where $b.code = $code\n")
    document = {"query": "held", "text": text.rstrip("\n")}
    assert json.loads(call(*given, "--json")[1]) == document


def test_a_profile_has_what_each_step_did(call: Call, stock: Omnigraph) -> None:
    arguments = ("query", "explain", "--uri", "stock", "--query", "held.gq", "--profile", *CODE)
    code, output, errors = call(*arguments)
    assert (code, errors) == (0, "")
    assert "1 rows of 1 in " in output
    assert output.splitlines()[-1].startswith("  1 rows in ")

    document = json.loads(call(*arguments, "--json")[1])
    assert document["rows"] == 1
    assert document["seconds"] > 0
    assert [step["work"]["rows_out"] for step in document["steps"]] == [1, 1]


def test_a_snapshot_may_be_named(call: Call, stock: Omnigraph) -> None:
    loaded = stock.snapshot()
    stock.tag_create("first", ReadTarget(snapshot_id=loaded.commit.graph_commit_id))
    stock.mutate('query drop() { delete Part where sku = "M8" }')

    def rows(*which: object) -> int:
        output = call(
            "query", "explain", "stock", "-e", HELD, "--profile", "--json", *CODE, *which
        )[1]
        found: int = json.loads(output)["rows"]
        return found

    assert rows() == 0
    assert rows("--tag", "first") == rows("--version", loaded.manifest_version) == 1
    assert rows("--snapshot", loaded.commit.graph_commit_id) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--query", "held.gq"], 2, "URI must be provided"),
        (["stock", "--query", "held.gq", "--schema", "stock.pg"], 2, "a graph cannot go with"),
        (["--query", "held.gq", "--schema", "stock.pg", "--profile"], 2, "--profile cannot go"),
        (["--query", "held.gq", "--schema", "stock.pg", *CODE], 2, "--params cannot go"),
        (["stock", "--query", "held.gq", *CODE], 2, "--params goes with --profile only"),
        (["stock", "--query", "held.gq", "--timeout", "1"], 2, "--timeout goes with --profile"),
        (["stock"], 1, "give exactly one query"),
        (["stock", "--query", "held.gq", "--tag", "a", "--branch", "b"], 2, "exclude each other"),
        (["stock", "--query", "held.gq", "--profile"], 1, "param 'code': missing"),
        (["stock", "-e", HELD.replace("sku", "sko")], 1, "query string:3:15: error T6"),
        (["stock", "--query", "held.gq", "--branch", "none"], 1, "none"),
        (["stock", "-e", "query d() { delete Part where sku = \"a\" }"], 1, "changes the graph"),
    ],
)  # fmt: skip
def test_mistakes(call: Call, stock: Omnigraph, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("query", "explain", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
