"""`omnigraph schema diagram` and `omnigraph commit graph`."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

BIN = b'{"type":"Bin","data":{"code":"B2"}}'
SVG = "{http://www.w3.org/2000/svg}"


def test_a_schema_of_a_graph_and_of_a_file(call: Call, folder: Path, full: Omnigraph) -> None:
    code, text, errors = call("schema", "diagram", "stock")
    assert (code, errors) == (0, "")
    assert text.startswith("erDiagram\n  Part {\n    String sku PK\n")
    assert text.endswith('  Bin }o--o{ Part : "Holds (count)"\n')
    assert call("schema", "diagram", "--schema", "stock.pg")[1] == text
    document = json.loads(call("schema", "diagram", "stock", "--json")[1])
    assert document == {"format": "mermaid", "diagram": text}
    assert call("schema", "diagram", "stock", "--svg", "--output", "s.svg") == (0, "", "")
    picture = (folder / "s.svg").read_text()
    assert picture == call("schema", "diagram", "--uri", "stock", "--svg")[1]
    titles = [item.text for item in ET.fromstring(picture).iter(f"{SVG}title")]
    assert titles == ["schema of stock"]


def test_a_schema_as_it_was(call: Call, full: Omnigraph) -> None:
    first = full.snapshot().commit.graph_commit_id
    full.schema_apply(f"{full.schema_show().source}\nnode Site {{ code: String @key }}\n")
    assert "  Site {" in call("schema", "diagram", "stock")[1]
    assert "  Site {" not in call("schema", "diagram", "stock", "--snapshot", first)[1]


@pytest.fixture
def merged(full: Omnigraph) -> list[str]:
    """A branch that was merged into main, both with work of their own; ids, newest first."""
    full.branch_create("review")
    full.load(BIN, mode="merge", branch="review", actor="ada")
    full.load(BIN.replace(b"B2", b"C3"), mode="merge")
    full.branch_merge("review")
    full.tag_create("v1")
    return [commit.graph_commit_id for commit in full.list_commits()]


def test_commits_with_their_lines(call: Call, merged: list[str], folder: Path) -> None:
    code, text, errors = call("commit", "graph", "stock")
    assert (code, errors) == (0, "")
    merge, ours, theirs, loaded, first = merged
    lines = text.splitlines()
    starts = [
        f"● {merge} (main, tag:v1) merge main v4 20",
        "├─╮",
        f"● │ {ours} load main v3 20",
        f"│ ● {theirs} (review) load review v2 20",
        "├─╯",
        f"● {loaded} load main v2 20",
        f"● {first} init main v1 20",
    ]
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    assert lines[3].endswith("Z ada")
    plain = call("commit", "graph", "stock", "--ascii", "--limit", "2")[1]
    assert plain.isascii()
    assert plain.splitlines()[1:] == ["|\\", plain.splitlines()[2], ": :"]


def test_commits_of_all_branches(call: Call, merged: list[str], full: Omnigraph) -> None:
    later = full.load(BIN.replace(b"B2", b"D4"), mode="merge", branch="review").commit
    assert later is not None
    ids = [later.graph_commit_id, *merged]
    document = json.loads(call("commit", "graph", "stock", "--all", "--json")[1])
    assert document["uri"] == "stock"
    assert [item["graph_commit_id"] for item in document["commits"]] == ids
    tip, merge, *_ = document["commits"]
    assert (tip["lane"], tip["branches"], tip["tags"]) == (0, ["review"], [])
    assert (merge["lane"], merge["branches"], merge["tags"]) == (1, ["main"], ["v1"])
    alone = json.loads(call("commit", "graph", "stock", "--branch", "review", "--json")[1])
    assert [item["graph_commit_id"] for item in alone["commits"]] == [ids[0], *merged[2:]]
    few = json.loads(call("commit", "graph", "stock", "--all", "--limit", "2", "--json")[1])
    assert [item["graph_commit_id"] for item in few["commits"]] == ids[:2]


def test_commits_as_a_picture(call: Call, merged: list[str], folder: Path) -> None:
    assert call("commit", "graph", "stock", "--svg", "--output", "c.svg") == (0, "", "")
    root = ET.fromstring((folder / "c.svg").read_text())
    assert len(list(root.iter(f"{SVG}circle"))) == len(merged)
    texts = [item.text or "" for item in root.iter(f"{SVG}text")]
    assert [text[:26] for text in texts[::2]] == merged
    call("commit", "graph", "stock", "--output", "c.txt")
    assert (folder / "c.txt").read_text() == call("commit", "graph", "stock")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["schema", "diagram"], 2, "URI must be provided"),
        (["schema", "diagram", "stock", "--schema", "stock.pg"], 2, "exclude each other"),
        (["schema", "diagram", "--schema", "none.pg"], 1, "cannot read schema file none.pg"),
        (["schema", "diagram", "stock", "--output", "no/where.svg"], 1, "cannot write no/where"),
        (["schema", "diagram", "stock", "--branch", "none"], 1, "no branch `none`"),
        (["commit", "graph", "stock", "--branch", "none"], 1, "no branch `none`"),
        (["commit", "graph", "stock", "--branch", "main", "--all"], 2, "exclude each other"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call(*arguments)
    assert (ended, output) == (code, "")
    assert text in errors
