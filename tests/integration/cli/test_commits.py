"""`omnigraph commit …`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

BIN = b'{"type":"Bin","data":{"code":"B2"}}'


def test_the_list_is_newest_first(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    full.load(BIN, mode="merge", branch="review", actor="ada")
    third, second, first = (item.graph_commit_id for item in full.list_commits("review"))
    code, output, errors = call("commit", "list", "stock", "--branch", "review")
    assert (code, errors) == (0, "")
    lines = [line.split(" time=") for line in output.splitlines()]
    assert [line for line, _ in lines] == [
        f"{third} branch=review version=2 actor=ada operation=load",
        f"{second} branch=main version=2 operation=load",
        f"{first} branch=main version=1 operation=init",
    ]
    for (_, moment), commit_id in zip(lines[1:], (second, first), strict=True):
        shown = json.loads(call("snapshot", "stock", "--at", moment, "--json")[1])
        assert shown["commit_id"] == commit_id, "what --at takes"
    assert call("commit", "list", "--uri", "stock", "--limit", "1")[1].split()[0] == second
    assert call("commit", "list", "stock", "--limit", "0") == (0, "", "")


def test_one_commit(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    made = full.load(BIN, mode="merge", branch="review", actor="ada").commit
    assert made is not None
    assert call("commit", "show", made.graph_commit_id, "stock") == (
        0,
        f"graph_commit_id: {made.graph_commit_id}\n"
        "manifest_branch: review\n"
        "manifest_version: 2\n"
        f"parent_commit_id: {made.parent_commit_id}\n"
        "actor_id: ada\n"
        f"created_at: {made.created_at}\n"
        "operation: load\n",
        "",
    )
    first = full.list_commits()[-1].graph_commit_id
    lines = call("commit", "show", first, "stock")[1].splitlines()
    assert lines[1] == "manifest_branch: main"
    assert not any(line.startswith(("parent", "merged", "actor")) for line in lines)


def test_documents(call: Call, full: Omnigraph) -> None:
    commits = json.loads(call("commit", "list", "stock", "--json")[1])["commits"]
    head = full.snapshot().commit
    expected = {
        "graph_commit_id": head.graph_commit_id,
        "manifest_branch": None,
        "manifest_version": 2,
        "parent_commit_id": head.parent_commit_id,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": head.created_at,
        "operation": "load",
    }
    assert list(commits[0].items()) == list(expected.items())
    assert len(commits) == 2
    shown = json.loads(call("commit", "show", head.graph_commit_id, "stock", "--json")[1])
    assert shown == expected


def test_a_commit_is_taken_back(call: Call, full: Omnigraph) -> None:
    made = full.load(BIN, mode="merge").commit
    assert made is not None
    wrong = made.graph_commit_id
    code, output, _ = call("commit", "revert", wrong, "stock", "--dry-run")
    assert (code, output.splitlines()[0]) == (0, f"dry run: reverted {wrong} on main: merged")
    assert full.head_commit_id_for_branch() == wrong
    code, output, errors = call("commit", "revert", wrong, "stock", "--as", "ada")
    head = full.snapshot().commit
    assert (code, errors) == (0, "")
    first, *tables, actor, commit = output.splitlines()
    assert first == f"reverted {wrong} on main: merged"
    assert [line.split()[0] for line in tables if "kept" not in line] == ["node:Bin"]
    assert (actor, commit) == ("actor_id: ada", f"commit_id: {head.graph_commit_id}")
    assert head.operation == "revert"
    assert full.snapshot().table("node:Bin").row_count == 1
    again = json.loads(call("commit", "revert", wrong, "stock", "--json")[1])
    assert (again["outcome"], again["commit_id"]) == ("already_up_to_date", None)


@pytest.mark.parametrize("name", ["pick", "cherry-pick"])
def test_a_commit_is_repeated(call: Call, full: Omnigraph, name: str) -> None:
    full.branch_create("review")
    made = full.load(BIN, mode="merge", branch="review").commit
    assert made is not None
    full.load(BIN.replace(b"B2", b"C3"), mode="merge", branch="review")
    document = json.loads(call("commit", name, made.graph_commit_id, "stock", "--json")[1])
    assert (document["target"], document["outcome"]) == ("main", "merged")
    assert document["commit_id"] == full.head_commit_id_for_branch()
    assert full.snapshot().table("node:Bin").row_count == 2
    assert full.snapshot().commit.merged_parent_commit_id is None


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["list"], 2, "URI must be provided"),
        (["list", "stock", "--limit", "-1"], 2, "--limit"),
        (["list", "stock", "--branch", "none"], 1, "no branch `none`"),
        (["show"], 2, "ID"),
        (["show", "none", "stock"], 1, "no commit `none`"),
        (["revert", "none", "stock"], 1, "no commit `none`"),
        (["pick", "none", "stock"], 1, "no commit `none`"),
        (["pick", "none", "stock", "--ours", "--theirs"], 2, "exclude each other"),
        (["revert", "none", "stock", "--strategy", "guess"], 2, "guess"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("commit", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
