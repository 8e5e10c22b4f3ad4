"""`omnigraph index …`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call


def test_what_is_missing_is_built_once(folder: Path, full: Omnigraph) -> None:
    before = omnigraph("index", "status", "stock", folder=folder)
    assert (before.returncode, before.stderr) == (0, "")
    assert before.stdout.splitlines()[-2:] == [
        "node:Part id BTREE pending 0 of 2 rows",
        "node:Part sku INVERTED pending 0 of 2 rows",
    ]
    done = omnigraph("index", "ensure", "stock", "--as", "ada", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"built {len(lines) - 1} indexes of stock branch main"
    assert "node:Bin code INVERTED complete 1 of 1 row" in lines
    commit = full.snapshot().commit
    assert (commit.operation, commit.actor_id) == ("ensure_indices", "ada")

    again = omnigraph("index", "ensure", "--uri", "stock", folder=folder)
    assert again.stdout == "built 0 indexes of stock branch main\n"
    assert full.snapshot().commit == commit
    status = omnigraph("index", "status", "stock", folder=folder)
    assert status.stdout.splitlines() == lines[1:]


def test_documents(call: Call, full: Omnigraph) -> None:
    full.ensure_indices()
    full.branch_create("review")
    full.load(b'{"type":"Bin","data":{"code":"B2"}}', mode="merge", branch="review")
    document = json.loads(call("index", "status", "stock", "--branch", "review", "--json")[1])
    assert document == {
        "uri": "stock",
        "branch": "review",
        "indexes": [report.to_json() for report in full.index_status("review")],
    }
    states = {(item["table_key"], item["column"]): item for item in document["indexes"]}
    assert states["node:Bin", "code"]["state"] == "partial"
    assert states["node:Part", "sku"]["is_inherited"]

    lines = call("index", "status", "stock", "--branch", "review")[1]
    assert "node:Bin code INVERTED partial 1 of 2 rows\n" in lines
    assert "node:Part sku INVERTED complete inherited 2 of 2 rows\n" in lines

    output = call("index", "ensure", "stock", "--branch", "review", "--json")[1]
    built = [item for item in json.loads(output)["indexes"] if item["is_built"]]
    assert {item["table_key"] for item in built} == {"node:Bin"}


def test_topology(call: Call, full: Omnigraph) -> None:
    code, output, errors = call("index", "topology", "stock", "--type", "Holds")
    assert (code, output, errors) == (0, "edge:Holds small 1 edge\n", "")
    document = json.loads(call("index", "topology", "stock", "--json")[1])
    edge = {"table_key": "edge:Holds", "edges": 1, "outcome": "small"}
    assert document == {"uri": "stock", "branch": "main", "edge_types": [edge]}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["ensure"], 2, "URI must be provided"),
        (["status", "stock", "--uri", "stock"], 2, "exclude each other"),
        (["mend", "stock"], 2, "No such command"),
        (["ensure", "stock", "--branch", "none"], 1, "none"),
        (["status", "stock", "--branch", "none"], 1, "none"),
        (["status", "nowhere"], 1, "nowhere"),
        (["topology", "stock", "--type", "Part"], 1, "no edge type `Part`"),
        (["topology", "stock", "--branch", "none"], 1, "none"),
        (["topology", "http://127.0.0.1:9/graphs/stock"], 1, "where it is kept"),
        (["ensure", "stock", "--engine", "duck"], 2, "duck"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("index", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
