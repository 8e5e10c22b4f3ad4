"""Diffs and the feed of changes over HTTP say what the engine says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff.model import ChangeFilter, ChangeOp
from tests.support.ageing import clean_up
from tests.support.cases import each
from tests.support.served import document, lines, new_stock, part, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changes")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    graph = new_stock(root)
    graph.tag_create("begin")
    graph.branch_create("review")
    graph.load(lines([part("p1", stock=1), part("q1"), part("q2")]), branch="review")
    return graph


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


def test_a_diff_of_branches(client: Client, stock: Omnigraph) -> None:
    expected = stock.diff_between("main", "review").to_json()
    assert document(client.post("/branches/diff", {"from": "main", "to": "review"})) == expected
    tagged = {"from": "tag:begin", "to": {"branch": "review"}}
    assert document(client.post("/branches/diff", tagged)) == expected


def test_a_diff_is_narrowed(client: Client, stock: Omnigraph) -> None:
    wanted = ChangeFilter(type_names=frozenset({"Part"}), ops=frozenset({ChangeOp.INSERT}))
    expected = stock.diff_between("main", "review", wanted, has_values=False, limit=1)
    body = {
        "from": "main",
        "to": "review",
        "type_names": ["Part"],
        "ops": ["insert"],
        "values": False,
        "limit": 1,
    }
    found = document(client.post("/branches/diff", body))
    assert found == expected.to_json(has_values=False)
    assert (found["complete"], len(found["changes"])) == (False, 1)


def test_a_diff_as_lines(client: Client, stock: Omnigraph) -> None:
    expected = stock.diff_between("main", "review").to_json()
    response = client.post(
        "/branches/diff",
        {"from": "main", "to": "review"},
        headers={"Accept": "application/x-ndjson"},
    )
    assert response.headers["content-type"].startswith("application/x-ndjson")
    first, *changes = [json.loads(line) for line in response.text.splitlines()]
    assert changes == expected.pop("changes")
    assert first == expected


def test_who_takes_a_document_too_gets_a_document(client: Client) -> None:
    accept = {"Accept": "application/json, application/x-ndjson"}
    answer = client.post("/branches/diff", {"from": "main", "to": "main"}, headers=accept)
    assert answer.headers["content-type"] == "application/json"
    assert document(answer)["changes"] == []


def test_many_changes_come_in_portions(client: Client, stock: Omnigraph) -> None:
    stock.branch_create("many")
    stock.load(lines(part(f"m{number:05}") for number in range(3_000)), branch="many")
    body = {"from": "main", "to": "many"}
    with client.stream("POST", "/branches/diff", json=body) as response:
        pieces = list(response.iter_bytes())
    assert len(pieces) > 1
    assert len(json.loads(b"".join(pieces))["changes"]) == 3_000


@each(
    ("body", "status"),
    [
        ({"from": "main", "to": "nowhere"}, 404),
        ({"from": "main", "to": "tag:nothing"}, 404),
        ({"from": "main", "to": ""}, 400),
        ({"from": "main", "to": {}}, 400),
        ({"from": "main", "to": {"branch": "a", "tag": "b"}}, 400),
        ({"from": "main", "to": "review", "type_names": ["Nut"]}, 400),
        ({"from": "main", "to": "review", "ops": ["rename"]}, 422),
        ({"from": "main", "to": "review", "limit": -1}, 422),
        ({"to": "review"}, 422),
    ],
)
def test_a_diff_that_cannot_be_is_refused(client: Client, body: object, status: int) -> None:
    assert document(client.post("/branches/diff", body), status)["error"]


def test_what_a_commit_changed(client: Client, stock: Omnigraph) -> None:
    head = stock.head_commit_id_for_branch("review")
    found = document(client.get(f"/commits/{head}/changes"))
    assert found == stock.commit_changes(head).to_json()
    narrowed = document(
        client.get(f"/commits/{head}/changes", params={"op": ["update"], "values": False})
    )
    assert [change["id"] for change in narrowed["changes"]] == ["p1"]
    assert "after" not in narrowed["changes"][0]
    missing = document(client.get("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/changes"), 404)
    assert missing["reason"] == "not_found.commit"


def test_the_feed_goes_on_from_its_cursor(client: Client, stock: Omnigraph) -> None:
    begin = document(client.get("/changes"))
    assert (begin["blocks"], begin["caught_up"]) == ([], True)
    same = document(client.get("/changes/cursor"))
    assert same["cursor"] == begin["cursor"]
    stock.load(lines([part("feed1")]))
    stock.load(lines([part("feed2")]))
    page = document(client.get("/changes", params={"cursor": begin["cursor"], "max_commits": 1}))
    (block,) = page["blocks"]
    assert [change["id"] for change in block["changes"]["changes"]] == ["feed1"]
    assert page["caught_up"] is False
    rest = document(client.get("/changes", params={"cursor": page["cursor"]}))
    assert [block["changes"]["changes"][0]["id"] for block in rest["blocks"]] == ["feed2"]


def test_the_feed_starts_where_it_is_told(client: Client, stock: Omnigraph) -> None:
    commits = stock.list_commits("review")
    everything = document(client.get("/changes", params={"branch": "review", "start": "beginning"}))
    # The first commit is the empty graph: nothing comes before what it holds.
    assert len(everything["blocks"]) == len(commits) - 1
    after = f"after:{commits[1].graph_commit_id}"
    last = document(client.get("/changes", params={"branch": "review", "start": after}))
    assert [block["commit"] for block in last["blocks"]] == [commits[0].to_json()]
    now = document(client.get("/changes", params={"branch": "review", "start": "now"}))
    assert now["blocks"] == []


def test_a_cursor_at_a_commit(client: Client, stock: Omnigraph) -> None:
    commit = stock.list_commits("review")[1].graph_commit_id
    parameters = {"commit": commit, "branch": "review", "type": "Part"}
    cursor = document(client.get("/changes/cursor", params=parameters))["cursor"]
    page = document(
        client.get("/changes", params={"cursor": cursor, "branch": "review", "type": "Part"})
    )
    assert len(page["blocks"]) == 1
    other = document(client.get("/changes", params={"cursor": cursor, "branch": "review"}), 400)
    assert other["reason"] == "changes.cursor_rejected"


@each(
    ("parameters", "status"),
    [
        ({"cursor": "nonsense"}, 400),
        ({"start": "yesterday"}, 400),
        ({"start": "after:"}, 400),
        ({"start": "now", "cursor": "x"}, 400),
        ({"start": "after:01ARZ3NDEKTSV4RRFFQ69G5FAV"}, 404),
        ({"branch": "nowhere"}, 404),
        ({"type": "Nut"}, 400),
        ({"max_commits": 0}, 422),
        ({"kind": "vertex"}, 422),
    ],
)
def test_a_feed_that_cannot_be_is_refused(
    client: Client, parameters: dict[str, str], status: int
) -> None:
    assert document(client.get("/changes", params=parameters), status)["error"]


def test_a_gap_is_gone(tmp_path: Path) -> None:
    graph = new_stock(tmp_path)
    cursor = graph.cursor_at()
    for number in range(3):
        graph.load(lines([part(f"g{number}")]))
    clean_up(graph, keep=1)
    with stock_server(tmp_path) as client:
        found = document(client.get("/changes", params={"cursor": cursor}), 410)
        assert found["reason"] == "changes.gap"
        assert found["details"]["resume_commit_id"]
