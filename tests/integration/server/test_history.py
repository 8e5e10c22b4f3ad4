"""Taking commits back, repeating them elsewhere, resetting branches, and staging work in runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.served import document, lines, new_stock, part, stock_server
from tests.support.server import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

TOKEN = "token-of-ada"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root, token=TOKEN, env=tokens(ada=TOKEN)) as client:
        yield client


def stock_of(graph: Omnigraph, sku: str, branch: str = "main") -> Any:
    version = graph.snapshot(branch).manifest_version
    found = graph.entity_at("node:Part", sku, version=version, branch=branch)
    return None if found is None else found.get("stock")


def test_a_commit_is_reverted(client: Client, stock: Omnigraph) -> None:
    commit = stock.load(lines([part("p2", stock=70)])).commit
    assert commit is not None
    path = f"/commits/{commit.graph_commit_id}/revert"
    tried = document(client.post(path, {"dry_run": True}))
    assert (tried["dry_run"], tried["commit_id"], stock_of(stock, "p2")) == (True, None, 70)
    done = document(client.post(path))
    assert (done["target"], done["actor_id"], stock_of(stock, "p2")) == ("main", "ada", 7)
    assert stock.get_commit(done["commit_id"]).actor_id == "ada"


def test_a_commit_is_picked(client: Client, stock: Omnigraph) -> None:
    stock.branch_create("source")
    commit = stock.load(lines([part("pick1", stock=5)]), branch="source").commit
    assert commit is not None
    done = document(client.post(f"/commits/{commit.graph_commit_id}/pick", {"into": "main"}))
    assert (done["target"], stock_of(stock, "pick1")) == ("main", 5)


def test_conflicts_are_told_and_chosen(client: Client, stock: Omnigraph) -> None:
    stock.branch_create("left")
    commit = stock.load(lines([part("p1", stock=40)]), branch="left").commit
    assert commit is not None
    stock.load(lines([part("p1", stock=41)]))
    path = f"/commits/{commit.graph_commit_id}/pick"
    refused = document(client.post(path), 409)
    (conflict,) = refused["merge_conflicts"]
    assert (conflict["table_key"], conflict["row_id"]) == ("node:Part", "p1")
    choices = [{"table_key": "node:Part", "row_id": "p1", "choose": "theirs"}]
    done = document(client.post(path, {"choices": choices}))
    assert (done["resolved"], stock_of(stock, "p1")) == (1, 40)


@pytest.mark.parametrize(
    ("body", "status"),
    [({"strategy": "cell"}, 400), ({"resolve": "mine"}, 400), ({"branch": "nowhere"}, 404)],
)
def test_what_cannot_be_chosen_is_refused(
    client: Client, stock: Omnigraph, body: object, status: int
) -> None:
    head = stock.head_commit_id_for_branch()
    assert document(client.post(f"/commits/{head}/revert", body), status)["error"]
    missing = document(client.post("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/revert"), 404)
    assert missing["reason"] == "not_found.commit"


def test_a_branch_is_reset(client: Client, stock: Omnigraph) -> None:
    stock.branch_create("moved")
    stock.tag_create("before", "moved")
    stock.load(lines([part("gone", stock=1)]), branch="moved")
    body = {"branch": "moved", "to": "tag:before"}
    refused = document(client.post("/branches/reset", body), 400)
    assert "confirm" in f"{refused}"
    assert stock_of(stock, "gone", "moved") == 1
    done = document(client.post("/branches/reset", {**body, "confirm": True}))
    assert done["commit"]["actor_id"] == "ada"
    assert done["commit_id"] == stock.head_commit_id_for_branch("moved")
    assert stock_of(stock, "gone", "moved") is None


def test_a_run_is_begun_previewed_and_failed(client: Client, stock: Omnigraph) -> None:
    run = document(client.post("/runs", {"operation_hash": "import-1"}))
    assert (run["target_branch"], run["status"], run["actor_id"]) == ("main", "running", "ada")
    again = document(client.post("/runs", {"operation_hash": "import-1"}))
    assert again["run_id"] == run["run_id"]
    stock.load(lines([part("staged")]), branch=run["run_branch"])
    preview = document(client.post(f"/runs/{run['run_id']}/preview"))
    assert preview["dry_run"] is True
    counts = {table["table_key"]: table["disposition"] for table in preview["tables"]}
    assert counts["node:Part"] == "adopted"
    assert document(client.post(f"/runs/{run['run_id']}/fail"))["status"] == "failed"
    ended = document(client.post(f"/runs/{run['run_id']}/preview", {"resolve": "ours"}), 409)
    assert "failed" in ended["error"]
    assert document(client.post("/runs/nothing/fail"), 404)["reason"] == "not_found.run"
    assert document(client.post("/runs", {"target_branch": "nowhere"}), 404)["code"] == "not_found"
