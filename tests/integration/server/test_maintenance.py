"""Maintenance, indexes and embeddings over HTTP answer as the command line does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.history.snapshots import ReadTarget
from tests.support.cases import each
from tests.support.served import document, lines, new_stock, part, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("maintenance")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


def test_indexes_are_told_and_built(client: Client, stock: Omnigraph) -> None:
    stock.load(lines([part("i1")]))
    before = document(client.get("/indexes"))
    assert before["indexes"] == [report.to_json() for report in stock.index_status()]
    built = document(client.post("/indexes"))
    assert {index["column"] for index in built["indexes"]} >= {"name"}
    assert document(client.get("/indexes"))["indexes"][0]["rows"] > 0
    first = stock.list_commits()[-1].graph_commit_id
    of_first = document(client.get("/indexes", params={"snapshot": first}))
    assert of_first["branch"] is None
    assert {index["rows"] for index in of_first["indexes"]} == {0}
    both = client.get("/indexes", params={"snapshot": first, "tag": "v1"})
    assert "exclude each other" in document(both, 400)["error"]
    missing = document(client.get("/indexes", params={"branch": "nowhere"}), 404)
    assert missing["reason"] == "not_found.branch"
    assert document(client.post("/indexes", {"branch": "nowhere"}), 404)["code"] == "not_found"


def test_small_files_are_joined(client: Client, stock: Omnigraph) -> None:
    for number in range(3):
        stock.load(lines([part(f"o{number}")]))
    done = document(client.post("/optimize", {"include_inherited": True}))
    (parts,) = [table for table in done["tables"] if table["table_key"] == "node:Part"]
    assert parts["fragments_removed"] > parts["fragments_added"] > 0
    again = document(client.post("/optimize"))
    assert {table["reason"] for table in again["tables"]} == {"nothing to do"}


def test_cleanup_shows_before_it_removes(client: Client, stock: Omnigraph) -> None:
    shown = document(client.post("/cleanup", {"keep": 1}))
    assert (shown["is_preview"], shown["keep_versions"]) == (True, 1)
    done = document(
        client.post("/cleanup", {"older_than_secs": 10**6, "branches": ["main"], "confirm": True})
    )
    assert (done["is_preview"], done["older_than_secs"]) == (False, 10**6)


@each(
    ("body", "status"),
    [
        ({}, 400),
        ({"keep": 1, "grace_secs": 1}, 400),
        ({"keep": 1, "branches": ["nowhere"]}, 404),
        ({"keep": 1, "branches": [], "confirm": True}, 400),
        ({"keep": 0}, 422),
        ({"older_than_secs": 10**30}, 422),
        (None, 422),
    ],
)
def test_a_cleanup_that_cannot_be_is_refused(client: Client, body: object, status: int) -> None:
    assert document(client.post("/cleanup", body), status)["error"]


def test_a_sound_graph_is_told_so(client: Client, stock: Omnigraph) -> None:
    found = document(client.post("/verify"))
    assert (found["is_sound"], found["is_deep"], found["branch"]) == (True, False, None)
    deep = document(client.post("/verify", {"branch": "main", "deep": True}))
    assert (deep["is_deep"], deep["branch"]) == (True, "main")
    assert document(client.post("/verify", {"branch": "nowhere"}), 404)["code"] == "not_found"


def test_embeddings_are_told_and_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph_core.engine.omnigraph import Omnigraph

    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", "off")
    schema = 'node Note {\n  slug: String @key\n  text: String\n  v: Vector(4) @embed("text")\n}\n'
    graph = Omnigraph.init(str(tmp_path / "stock"), schema)
    note = {"type": "Note", "data": {"slug": "a", "text": "bolts"}}
    graph.load(lines([note]), embed="off")
    loaded = graph.head_commit_id_for_branch()
    with stock_server(tmp_path) as client:
        (status,) = document(client.get("/embeddings"))["embeddings"]
        assert (status["type"], status["property"], status["pending"]) == ("Note", "v", 1)
        done = document(client.post("/embeddings/backfill"))
        assert (done["vectors_made"], done["branch"], len(done["commits"])) == (1, "main", 1)
        assert document(client.get("/embeddings"))["embeddings"][0]["ready"] == 1
        graph.tag_create("before", target=ReadTarget(snapshot_id=loaded))
        (status,) = document(client.get("/embeddings", params={"tag": "before"}))["embeddings"]
        assert (status["ready"], status["pending"]) == (0, 1)
