"""Long lists in parts: every item once and in order, whatever comes and goes meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.cases import each
from tests.support.served import document, ended, new_stock, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

NAMES: Final = ("a", "b/ü", "c c", "d")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    graph = new_stock(root)
    for name in NAMES:
        graph.branch_create(name)
        graph.tag_create(name)
        graph.begin_run(name)
    return graph


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        for _ in NAMES:
            job = client.post("/verify", headers={"Prefer": "respond-async"})
            ended(client, document(job, 202))
        yield client


def pages(client: Client, path: str, **params: Any) -> Iterator[list[Any]]:
    member = path.strip("/")
    while True:
        found = document(client.get(path, params=params))
        assert found[member]
        yield found[member]
        if "next_page_token" not in found:
            return
        params["page_token"] = found["next_page_token"]


@pytest.mark.parametrize("path", ["/branches", "/tags", "/commits", "/runs", "/jobs"])
@pytest.mark.parametrize("limit", [1, 3])
def test_pages_hold_every_item_once(client: Client, path: str, limit: int) -> None:
    whole = document(client.get(path))[path.strip("/")]
    assert len(whole) >= 2
    found = list(pages(client, path, limit=limit))
    assert [item for page in found for item in page] == whole
    assert {len(page) for page in found[:-1]} <= {limit}


def test_newest_commits_and_oldest_runs_come_first(client: Client, stock: Omnigraph) -> None:
    commits = document(client.get("/commits", params={"limit": 1}))["commits"]
    assert commits[0]["graph_commit_id"] == stock.head_commit_id_for_branch()
    runs = document(client.get("/runs", params={"limit": 1}))["runs"]
    assert runs[0]["target_branch"] == NAMES[0]


def test_details_are_those_of_the_page(client: Client) -> None:
    params = {"details": "true", "limit": 2}
    found = document(client.get("/branches", params=params))
    assert [item["name"] for item in found["details"]] == found["branches"] == ["a", "b/ü"]


@pytest.mark.parametrize("path", ["/branches", "/tags"])
def test_what_goes_between_two_pages_is_not_missed(
    client: Client, stock: Omnigraph, path: str
) -> None:
    """The last one seen is gone, another one came behind it."""
    for name in ("x1", "x3"):
        stock.branch_create(name)
        stock.tag_create(name)
    seen: list[str] = []
    for page in pages(client, path, limit=1):
        name = page[0] if path == "/branches" else page[0]["name"]
        seen.append(name)
        if name == "x1":
            document(client.delete(f"{path}/x1"))
            document(client.post(path, {"name": "x2"}))
    assert seen[seen.index("x1") :] == ["x1", "x2", "x3"]
    for name in {"x1", "x2", "x3"}:
        client.delete(f"/branches/{name}")
        client.delete(f"/tags/{name}")


@each("path", ["/branches", "/tags", "/commits", "/runs", "/jobs"])
@each(
    ("query", "status"),
    [("limit=0", 422), ("limit=x", 422), ("limit=10001", 422), ("page_token=x", 400)],
)
def test_pages_that_cannot_be(client: Client, path: str, query: str, status: int) -> None:
    assert document(client.get(f"{path}?{query}"), status)["code"] == "bad_request"
