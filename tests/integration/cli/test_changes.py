"""`omnigraph branch diff`, `commit changes` and `changes …`."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import typer

from omnigraph_core.diff.rows import TableDiff
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.diff.model import EntityChange
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

EDITS = b"""\
{"type":"Part","data":{"sku":"M8","name":"hex bolt","price":0.2,"note":"zinc plated"}}
{"type":"Part","data":{"sku":"M12"}}
{"edge":"Holds","from":"A1","to":"M10","data":{"id":"h2"}}
"""
GONE = 'query gone() { delete Holds where id = "h1" }'


@pytest.fixture
def edited(full: Omnigraph) -> Omnigraph:
    """The stock with a branch `review` on which rows of every kind differ."""
    full.branch_create("review")
    full.load(EDITS, mode="merge", branch="review", embed="off")
    full.mutate(GONE, branch="review")
    return full


LINES = [
    "node:Part +1 ~1 -0",
    "+ Part M12",
    '~ Part M8: name "bolt" -> "hex bolt", price 0.1 -> 0.2',
    "edge:Holds +1 ~0 -1",
    "- Holds h1 (A1 -> M8)",
    "+ Holds h2 (A1 -> M10)",
]


def test_a_diff_for_people(folder: Path, edited: Omnigraph) -> None:
    done = omnigraph("branch", "diff", "main..review", "stock", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == LINES


def test_less_of_it(call: Call, edited: Omnigraph) -> None:
    stat = call("branch", "diff", "main..review", "stock", "--stat")
    assert stat == (0, "edge:Holds +1 ~0 -1\nnode:Part +1 ~1 -0\n", "")
    bare = call("branch", "diff", "main..review", "stock", "--no-values")[1].splitlines()
    assert bare == [line.partition(":")[0] if line[0] == "~" else line for line in LINES]
    short = call("branch", "diff", "main..review", "--uri", "stock", "--limit", 2)[1].splitlines()
    assert short == [*LINES[:4], "… and 2 more changes"]
    only = ("--type", "Part", "--type", "Holds", "--kind", "edge", "--op", "delete")
    assert call("branch", "diff", "main..review", "stock", *only)[1].splitlines() == [
        "edge:Holds +0 ~0 -1",
        LINES[4],
    ]
    assert call("branch", "diff", "main..main", "stock") == (0, "no difference\n", "")


def test_a_diff_as_a_document(call: Call, edited: Omnigraph) -> None:
    code, output, errors = call("branch", "diff", "main..review", "stock", "--json")
    assert (code, errors) == (0, "")
    expected = edited.diff_between("main", "review").to_json()
    assert json.loads(output) == {"uri": "stock", "from": "main", "to": "review", **expected}
    bare = json.loads(call("branch", "diff", "main..review", "stock", "--json", "--no-values")[1])
    assert "before" not in bare["changes"][0]
    stat = json.loads(call("branch", "diff", "main..review", "stock", "--json", "--stat")[1])
    assert stat["stats"] == expected["stats"]
    assert "changes" not in stat


@pytest.mark.parametrize("as_json", [True, False])
def test_a_change_is_printed_before_the_next_is_read(
    call: Call, edited: Omnigraph, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    """However many there are, a portion of them is in memory."""
    told: list[str] = []
    read = TableDiff.iter_changes
    echo = typer.echo

    def reading(*arguments: Any, **options: Any) -> Iterator[EntityChange]:
        for change in read(*arguments, **options):
            told.append(f"read {change.id}")
            yield change

    def printing(text: str = "", **options: Any) -> None:
        told.append(f"print {text}")
        echo(text, **options)

    monkeypatch.setattr(TableDiff, "iter_changes", reading)
    monkeypatch.setattr(typer, "echo", printing)
    call("branch", "diff", "main..review", "stock", *(["--json"] if as_json else []))
    ids = ["M12", "M8", "h1", "h2"]
    assert [item for item in told if item.startswith("read")] == [f"read {id}" for id in ids]
    for id, following in pairwise(ids):
        between = told[told.index(f"read {id}") : told.index(f"read {following}")]
        assert any(item.startswith("print") and id in item for item in between)


def test_the_form_of_a_document(call: Call, edited: Omnigraph) -> None:
    """Written in pieces, it is what it would be as a whole."""
    for options in ((), ("--op", "update"), ("--limit", 0), ("--limit", 1), ("--kind", "edge")):
        output = call("branch", "diff", "main..review", "stock", "--json", *options)[1]
        assert output == f"{json.dumps(json.loads(output), indent=2, ensure_ascii=False)}\n"
        document = json.loads(output)
        stats = document["stats"]
        total = stats["inserts"] + stats["updates"] + stats["deletes"]
        assert document["complete"] == (len(document["changes"]) == total)
    nothing = call("branch", "diff", "main..main", "stock", "--json")[1]
    assert nothing.endswith('"changes": []\n}\n')


def test_tags_and_commits(call: Call, edited: Omnigraph) -> None:
    edited.tag_create("old")
    second = edited.list_commits("review", limit=1)[0].graph_commit_id
    output = call("branch", "diff", f"tag:old..{second}", "stock")[1]
    assert output.splitlines() == LINES
    one = call("commit", "changes", second, "stock")
    assert one == (0, "edge:Holds +0 ~0 -1\n- Holds h1 (A1 -> M8)\n", "")
    document = json.loads(call("commit", "changes", second, "stock", "--json")[1])
    assert document == {"uri": "stock", **edited.commit_changes(second).to_json()}


def test_values_that_do_not_fit_a_line(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    rows = [
        {"type": "Part", "data": {"sku": "M8", "name": "x" * 100, "price": 0.1}},
        {"type": "Part", "data": {"sku": "M10", "name": "a\tb\x1b[2J", "drawing": "base64:aGV4"}},
        {"type": "Bin", "data": {"code": "a\nb"}},
    ]
    text = "\n".join(map(json.dumps, rows))
    full.load(text.encode(), mode="merge", branch="review", embed="off")
    lines = call("branch", "diff", "main..review", "stock")[1].splitlines()
    assert lines[1] == '+ Bin "a\\nb"'
    assert lines[3] == '~ Part M10: name "Mutter" -> "a\\tb\\u001b[2J"'
    assert lines[4] == f'~ Part M8: name "bolt" -> "{"x" * 58}…, note "zinc plated" -> null'


def test_following_a_branch(call: Call, full: Omnigraph) -> None:
    cursor = call("changes", "cursor", "stock")[1].strip()
    assert cursor == full.cursor_at()
    assert call("changes", "poll", "stock", "--cursor", cursor) == (0, f"cursor: {cursor}\n", "")
    full.load(EDITS, mode="merge", embed="off", actor="ada")
    first = full.head_commit_id_for_branch()
    full.mutate(GONE)
    code, output, errors = call("changes", "poll", "stock", "--cursor", cursor, "--commits", 1)
    lines = output.splitlines()
    assert (code, errors) == (0, "there is more: poll again with this cursor\n")
    assert lines[0] == f"commit {first} version=3 load actor=ada"
    assert lines[1:4] == LINES[:3]
    following = lines[-1].removeprefix("cursor: ")
    document = json.loads(call("changes", "poll", "stock", "--cursor", following, "--json")[1])
    expected = full.poll(following).to_json()
    assert document == {"uri": "stock", "branch": "main", **expected}
    assert document["caught_up"] is True
    assert [block["commit"]["operation"] for block in document["blocks"]] == ["mutate"]


def test_where_to_begin(call: Call, edited: Omnigraph) -> None:
    fork = edited.head_commit_id_for_branch()
    options = ("--branch", "review", "--type", "Part")
    document = json.loads(call("changes", "cursor", "stock", "--at", fork, *options, "--json")[1])
    assert (document["uri"], document["branch"]) == ("stock", "review")
    found = call("changes", "poll", "stock", "--cursor", document["cursor"], *options)[1]
    assert found.splitlines()[1:4] == LINES[:3]
    refused = call("changes", "poll", "stock", "--cursor", document["cursor"], "--branch", "review")
    assert refused[:2] == (1, "")
    assert "another filter" in refused[2]
    now = json.loads(call("changes", "poll", "stock", *options, "--json")[1])
    assert (now["blocks"], now["caught_up"]) == ([], True)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["branch", "diff", "main", "stock"], 2, "expected A..B"),
        (["branch", "diff", "main...review", "stock"], 2, "expected A..B"),
        (["branch", "diff", "..review", "stock"], 2, "expected a branch"),
        (["branch", "diff", "main..review"], 2, "URI must be provided"),
        (["branch", "diff", "main..gone", "stock"], 1, "gone"),
        (["branch", "diff", "tag:none..main", "stock"], 1, "none"),
        (["branch", "diff", "main..main", "stock", "--type", "Prat"], 1, "did you mean `Part`"),
        (["branch", "diff", "main..main", "stock", "--kind", "thing"], 2, "thing"),
        (["branch", "diff", "main..main", "stock", "--op", "merge"], 2, "merge"),
        (["branch", "diff", "main..main", "stock", "--limit", "-1"], 2, "or equal to 0"),
        (["commit", "changes", "nope", "stock"], 1, "no commit `nope`"),
        (["changes", "poll", "stock", "--cursor", "what"], 1, "the cursor is"),
        (["changes", "poll", "stock", "--limit", "0"], 2, "or equal to 1"),
        (["changes", "cursor", "stock", "--at", "nope"], 1, "no commit `nope`"),
        (["changes", "cursor", "stock", "--branch", "gone"], 1, "gone"),
    ],
)
def test_mistakes(call: Call, full: Omnigraph, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call(*arguments)
    assert (ended, output) == (code, "")
    assert text in errors
