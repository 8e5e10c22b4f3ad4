"""Tags over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.served import document, new_stock, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tags")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


def test_tags_come_and_go(client: Client, stock: Omnigraph) -> None:
    first = stock.list_commits()[-1].graph_commit_id
    made = document(client.post("/tags", {"name": "release/1", "target": first}))
    assert (made["name"], made["commit_id"], made["branch"]) == ("release/1", first, "main")
    head = document(client.post("/tags", {"name": "now"}))
    assert head["commit_id"] == stock.head_commit_id_for_branch()
    same = document(client.post("/tags", {"name": "same", "target": {"tag": "release/1"}}))
    assert same["commit_id"] == first
    listed = document(client.get("/tags"))["tags"]
    assert [tag["name"] for tag in listed] == ["now", "release/1", "same"]
    assert listed[1] == {key: made[key] for key in listed[1]}
    gone = document(client.delete("/tags/release%2F1"))
    assert gone == {"uri": stock.uri, "name": "release/1"}
    assert [tag.tag for tag in stock.tag_list()] == ["now", "same"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "taken"}, 409),
        ({"name": "x", "target": "nowhere"}, 404),
        ({"name": "x", "target": ""}, 400),
        ({"name": "a//b"}, 400),
        ({"name": ""}, 400),
        ({}, 422),
    ],
)
def test_a_tag_that_cannot_be_is_refused(
    client: Client, stock: Omnigraph, body: object, status: int
) -> None:
    if "taken" not in [tag.tag for tag in stock.tag_list()]:
        stock.tag_create("taken")
    assert document(client.post("/tags", body), status)["error"]


def test_an_unknown_tag_is_not_found(client: Client) -> None:
    assert document(client.delete("/tags/nothing"), 404)["reason"] == "not_found.tag"
