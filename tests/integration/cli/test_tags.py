"""`omnigraph tag …`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call


def test_lines_for_people(call: Call, full: Omnigraph) -> None:
    head = full.head_commit_id_for_branch()
    assert call("tag", "create", "spring", "stock", "--as", "ada") == (
        0,
        f"created tag spring at {head}\n",
        "",
    )
    first = full.list_commits()[-1].graph_commit_id
    assert call("tag", "create", "begin", "--uri", "stock", "--at", first)[0] == 0
    assert call("tag", "create", "again", "stock", "--at", "tag:begin")[0] == 0
    assert call("tag", "list", "stock") == (
        0,
        f"again {first} branch=main version=1\n"
        f"begin {first} branch=main version=1\n"
        f"spring {head} branch=main version=2 actor=ada\n",
        "",
    )
    assert call("tag", "delete", "begin", "stock") == (0, "deleted tag begin\n", "")
    assert [tag.tag for tag in full.tag_list()] == ["again", "spring"]


def test_documents(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    made = json.loads(call("tag", "create", "t", "stock", "--at", "review", "--json")[1])
    (tag,) = full.tag_list()
    expected = {
        "name": "t",
        "commit_id": full.head_commit_id_for_branch(),
        "branch": "review",
        "manifest_version": 1,
        "created_at": tag.created_at,
        "actor_id": None,
    }
    assert list(made.items()) == [("uri", "stock"), *expected.items()]
    assert json.loads(call("tag", "list", "stock", "--json")[1]) == {"tags": [expected]}
    gone = json.loads(call("tag", "delete", "t", "stock", "--json")[1])
    assert gone == {"uri": "stock", "name": "t"}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["create", "t"], 2, "URI must be provided"),
        (["create"], 2, "NAME"),
        (["create", "t", "stock", "--at", "tag:"], 2, "tag:NAME"),
        (["create", "t", "stock", "--at", " "], 2, "expected a branch"),
        (["create", "main", "stock"], 1, "`main` is reserved"),
        (["create", "t", "stock", "--at", "none"], 1, "no branch `none`"),
        (["create", "t", "stock", "--at", "tag:none"], 1, "no tag `none`"),
        (["create", "t", "stock", "--at", "01M7HCRA2YB7TR5DXVE32ATFRJ"], 1, "no commit"),
        (["delete", "none", "stock"], 1, "no tag `none`"),
        (["list", "nowhere"], 1, "nowhere"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("tag", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
