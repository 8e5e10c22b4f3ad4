"""`omnigraph snapshot`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call


def test_lines_for_people(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    full.load(b'{"type":"Bin","data":{"code":"B2"}}', mode="merge", branch="review")
    assert call("snapshot", "stock", "--branch", "review") == (
        0,
        "branch: review\n"
        "manifest_version: 2\n"
        "edge:Holds v2 branch=main rows=1\n"
        "node:Bin v3 branch=review rows=2\n"
        "node:Part v2 branch=main rows=2\n",
        "",
    )


def test_a_document(call: Call, full: Omnigraph) -> None:
    document = json.loads(call("snapshot", "--uri", "stock", "--json")[1])
    snapshot = full.snapshot()
    tables = document.pop("tables")
    expected = {
        "branch": "main",
        "manifest_version": 2,
        "commit_id": snapshot.commit.graph_commit_id,
    }
    assert list(document.items()) == list(expected.items())
    assert [table["table_key"] for table in tables] == sorted(snapshot.tables)
    entry = snapshot.table("node:Part")
    assert list(tables[-1].items()) == [
        ("table_key", "node:Part"),
        ("table_path", entry.location),
        ("table_version", 2),
        ("table_branch", None),
        ("row_count", 2),
    ]


def test_the_branch_of_the_configuration(call: Call, folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    full.branch_create("next", source="review")
    full.tag_create("v1", "main")
    (folder / "omnigraph.yaml").write_text("cli: { branch: review }\n")
    assert call("snapshot", "stock")[1].startswith("branch: review\n")
    assert call("snapshot", "stock", "--branch", "main")[1].startswith("branch: main\n")
    assert call("snapshot", "stock", "--tag", "v1")[1].startswith("branch: main\n")
    assert call("index", "status", "stock", "--json")[1].startswith(
        '{\n  "uri": "stock",\n  "branch": "review"'
    )
    # What is written to by a merge is never a default that somebody may have forgotten.
    assert call("branch", "merge", "next", "stock")[1].startswith("merged next into main:")


def test_what_was(call: Call, full: Omnigraph) -> None:
    first = full.list_commits()[-1]
    full.tag_create("full")
    for option, rows in (
        (("--version", "1"), 0),
        (("--snapshot", first.graph_commit_id), 0),
        (("--tag", "full"), 2),
        (("--at", "2099-01-01T00:00:00Z"), 2),
    ):
        output = call("snapshot", "stock", *option)[1]
        assert output.endswith(f"rows={rows}\n"), option


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "URI must be provided"),
        (["stock", "--branch", "b", "--tag", "t"], 2, "exclude each other"),
        (["stock", "--branch", "none"], 1, "no branch `none`"),
        (["stock", "--version", "9"], 1, "9"),
        (["nowhere"], 1, "nowhere"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("snapshot", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
