"""`omnigraph branch …`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

BIN = b'{"type":"Bin","data":{"code":"B2"}}'


def part(sku: str, name: str) -> bytes:
    return json.dumps({"type": "Part", "data": {"sku": sku, "name": name}}).encode()


def name_of(graph: Omnigraph, sku: str) -> object:
    row = graph.entity_at("node:Part", sku, version=graph.snapshot().manifest_version)
    assert row is not None
    return row["name"]


def test_made_listed_and_deleted(call: Call, full: Omnigraph) -> None:
    created = call("branch", "create", "review", "stock", "--as", "ada")
    assert created == (0, "created branch review from main\n", "")
    call("branch", "create", "a/child", "--uri", "stock", "--from", "review")
    full.begin_run()
    assert call("branch", "list", "stock") == (0, "a/child\nmain\nreview\n", "")
    code, output, errors = call("branch", "delete", "review", "stock")
    assert (code, output) == (1, "")
    assert "`review` is the source of `a/child`" in errors
    assert call("branch", "delete", "a/child", "stock") == (0, "deleted branch a/child\n", "")
    assert full.branch_list() == ("main", "review")


def test_branches_of_commits_and_tags(call: Call, full: Omnigraph) -> None:
    first = full.list_commits()[-1].graph_commit_id
    full.tag_create("full")
    assert call("branch", "create", "old", "stock", "--from", first)[0] == 0
    assert call("branch", "create", "tagged", "stock", "--from", "tag:full")[0] == 0
    assert call("branch", "create", "plain", "stock", "--from", "branch:old")[0] == 0
    rows = [full.snapshot(name).table("node:Part").row_count for name in ("old", "tagged", "plain")]
    assert rows == [0, 2, 0]


def test_documents(call: Call, full: Omnigraph) -> None:
    head = full.head_commit_id_for_branch()
    made = json.loads(call("branch", "create", "review", "stock", "--as", "ada", "--json")[1])
    assert list(made.items()) == [
        ("uri", "stock"),
        ("from", "main"),
        ("name", "review"),
        ("actor_id", "ada"),
        ("commit_id", head),
    ]
    listed = json.loads(call("branch", "list", "stock", "--json")[1])
    assert listed["branches"] == ["main", "review"]
    main, review = listed["details"]
    assert (main["name"], main["commit_id"], main["from"]) == ("main", head, None)
    assert review == {
        "name": "review",
        "commit_id": head,
        "manifest_version": 1,
        "from": "main",
        "from_commit_id": head,
        "created_at": full.branch_get("review").created_at,
        "actor_id": "ada",
    }
    gone = json.loads(call("branch", "delete", "review", "stock", "--json")[1])
    assert list(gone.items()) == [("uri", "stock"), ("name", "review"), ("actor_id", None)]


def test_merging_tells_what_came_of_it(folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    work = full.load(BIN, mode="merge", branch="review").commit
    assert work is not None
    done = omnigraph(
        "branch", "merge", "review", "stock", "--as", "ada", "--delete-branch", folder=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    commit = full.snapshot().commit
    lines = done.stdout.splitlines()
    assert lines[0] == "merged review into main: fast_forward"
    assert any(line.startswith("node:Bin adopted") for line in lines)
    assert lines[-3:] == [
        "deleted branch review",
        "actor_id: ada",
        f"commit_id: {commit.graph_commit_id}",
    ]
    assert commit.merged_parent_commit_id == work.graph_commit_id
    assert full.branch_list() == ("main",)


def test_a_branch_that_stays_after_its_merge(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    full.load(BIN, mode="merge", branch="review")
    full.branch_create("review/next", source="review")
    code, output, errors = call("branch", "merge", "review", "stock", "--delete-branch")
    assert (code, output.splitlines()[0]) == (0, "merged review into main: fast_forward")
    assert errors.startswith("the branch review was not deleted: ")
    assert "review/next" in errors
    assert full.branch_list() == ("main", "review", "review/next")
    preview = call("branch", "merge", "review", "stock", "--delete-branch", "--dry-run")
    assert preview[2] == ""


def test_a_merge_as_a_document(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    full.branch_create("other")
    full.load(BIN, mode="merge", branch="review")
    full.load(BIN.replace(b"B2", b"C3"), mode="merge", branch="other")
    call("branch", "merge", "review", "stock", "--into", "other")
    output = call("branch", "merge", "other", "stock", "--as", "ada", "--json")[1]
    document = json.loads(output)
    assert list(document)[:5] == ["source", "target", "outcome", "actor_id", "commit_id"]
    assert list(document.values())[:4] == ["other", "main", "fast_forward", "ada"]
    again = json.loads(call("branch", "merge", "other", "stock", "--json")[1])
    assert (again["outcome"], again["commit_id"]) == ("already_up_to_date", None)


@pytest.fixture
def conflicting(full: Omnigraph) -> Omnigraph:
    """`review` and main have changed one part to different names, and another one each."""
    full.branch_create("review")
    full.load(part("M8", "theirs"), mode="merge", branch="review")
    full.load(BIN, mode="merge", branch="review")
    full.load(part("M8", "ours"), mode="merge")
    return full


def test_conflicts_are_told(call: Call, conflicting: Omnigraph, folder: Path) -> None:
    before = conflicting.snapshot()
    code, output, errors = call("branch", "merge", "review", "stock")
    assert (code, output) == (1, "")
    assert errors.startswith("error: merge conflicts: node:Part:M8 (divergent_update)\n")
    assert conflicting.snapshot() == before

    code, output, errors = call("branch", "merge", "review", "stock", "--dry-run")
    assert (code, errors) == (1, "")
    lines = output.splitlines()
    assert lines[0] == "dry run: merged review into main: merged"
    assert any(line.startswith("conflict: node:Part:M8 (divergent_update) ") for line in lines)
    document = json.loads(call("branch", "merge", "review", "stock", "--dry-run", "--json")[1])
    assert document["dry_run"] is True
    assert document["conflict_counts"] == {"divergent_update": 1}
    assert conflicting.snapshot() == before


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_side_is_chosen_for_all(call: Call, conflicting: Omnigraph, side: str) -> None:
    code, output, errors = call("branch", "merge", "review", "stock", f"--{side}")
    assert (code, errors) == (0, "")
    assert "resolved: 1 conflict\n" in output
    assert name_of(conflicting, "M8") == side
    assert conflicting.snapshot().table("node:Bin").row_count == 2


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_a_side_is_chosen_in_a_file(
    call: Call, conflicting: Omnigraph, folder: Path, dry_run: list[str]
) -> None:
    arguments = ["branch", "merge", "review", "stock"]
    code, _, errors = call(*arguments, *dry_run, "--conflicts", "conflicts.json")
    assert code == 1
    assert '1 conflict in conflicts.json: add "choose"' in errors
    path = folder / "conflicts.json"
    found = json.loads(path.read_text())
    assert [(item["table_key"], item["row_id"]) for item in found] == [("node:Part", "M8")]
    path.write_text(json.dumps([{**item, "choose": "theirs"} for item in found]))
    assert call(*arguments, "--resolve", "conflicts.json")[0] == 0
    assert name_of(conflicting, "M8") == "theirs"


def test_properties_are_merged(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    row = {"sku": "M10", "name": "Mutter", "price": 1.0}
    full.load(json.dumps({"type": "Part", "data": row}).encode(), mode="merge", branch="review")
    full.load(part("M10", "nut"), mode="merge")
    assert call("branch", "merge", "review", "stock")[0] == 1
    code, output, errors = call("branch", "merge", "review", "stock", "--strategy", "property")
    assert (code, errors) == (0, ""), errors
    assert output.startswith("merged review into main: merged\n")
    assert name_of(full, "M10") == "nut"


def test_another_head_than_expected(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    full.load(BIN, mode="merge", branch="review")
    head = full.head_commit_id_for_branch()
    full.load(BIN.replace(b"B2", b"C3"), mode="merge")
    code, output, errors = call("branch", "merge", "review", "stock", "--if-commit", head)
    assert (code, output) == (4, "")
    assert f"expected {head}" in errors


def test_reset_shows_first_and_then_does(call: Call, full: Omnigraph) -> None:
    head = full.head_commit_id_for_branch()
    first = full.list_commits()[-1].graph_commit_id
    arguments = ["branch", "reset", "main", "stock", "--to", first]
    code, output, errors = call(*arguments)
    assert (code, errors) == (0, "nothing was changed: give --confirm to do it\n")
    assert output.splitlines() == [
        f"would reset branch main from {head} to {first}",
        "edge:Holds +0 ~0 -1",
        "node:Bin +0 ~0 -1",
        "node:Part +0 ~0 -2",
    ]
    preview = json.loads(call(*arguments, "--json")[1])
    assert (preview["applied"], preview["stats"]["deletes"]) == (False, 4)
    assert full.head_commit_id_for_branch() == head

    code, output, errors = call(*arguments, "--confirm", "--as", "ada")
    commit = full.snapshot().commit
    assert (code, errors) == (0, "")
    assert output == f"reset branch main to {first}\ncommit_id: {commit.graph_commit_id}\n"
    assert (commit.parent_commit_id, commit.actor_id, commit.operation) == (head, "ada", "reset")
    assert full.snapshot().table("node:Part").row_count == 0
    back = call("branch", "reset", "main", "stock", "--to", head, "--confirm", "--json")[1]
    assert json.loads(back)["graph_commit_id"] == full.head_commit_id_for_branch()
    assert call("branch", "reset", "main", "stock", "--to", head)[1].endswith("no difference\n")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["create", "x"], 2, "URI must be provided"),
        (["create", "main", "stock"], 1, "`main` is reserved"),
        (["create", "__run__x", "stock"], 1, "reserved for internal use"),
        (["create", "x", "stock", "--from", "none"], 1, "no branch `none`"),
        (["delete", "main", "stock"], 1, "cannot delete branch 'main'"),
        (["delete", "none", "stock"], 1, "no branch `none`"),
        (["merge", "main", "stock"], 1, "distinct source and target"),
        (["merge", "none", "stock"], 1, "no branch `none`"),
        (["merge", "x", "stock", "--ours", "--theirs"], 2, "exclude each other"),
        (["merge", "x", "stock", "--strategy", "guess"], 2, "guess"),
        (["merge", "x", "stock", "--resolve", "none.json"], 1, "cannot read file of choices"),
        (["reset", "main", "stock"], 2, "--to"),
        (["reset", "none", "stock", "--to", "main"], 1, "no branch `none`"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("branch", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
