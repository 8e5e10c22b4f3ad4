"""Writes that another writer overtakes: they land as well, or are refused and say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.meanwhile import meanwhile
from tests.support.served import document, lines, new_stock, part, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

SET: Final = 'query set($to: I64) { update Part set { stock: $to } where sku = "p1" }'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("overtaken")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


def stock_of(graph: Omnigraph, branch: str) -> object:
    row = graph.entity_at(
        "node:Part", "p1", version=graph.snapshot(branch).manifest_version, branch=branch
    )
    assert row is not None
    return row["stock"]


def ingest(branch: str, mode: str, *records: Any) -> tuple[str, Any]:
    return "/ingest", {"data": lines(records).decode(), "branch": branch, "mode": mode}


@pytest.mark.parametrize("how", ["overwrite", "update"])
def test_what_rests_on_what_was_read_is_refused(client: Client, stock: Omnigraph, how: str) -> None:
    stock.branch_create(how)
    path, body = ingest(how, "overwrite", part("p1", stock=1))
    if how == "update":
        path, body = "/change", {"query_source": SET, "params": {"to": 1}, "branch": how}
    with meanwhile(lambda: stock.load(lines([part("p1", stock=50)]), branch=how, mode="merge")):
        refused = document(client.post(path, body), 409)
    assert (refused["code"], refused["retryable"]) == ("conflict", True)
    assert "retry" in refused["error"]
    assert stock_of(stock, how) == 50
    assert client.post(path, body).status_code == 200
    assert stock_of(stock, how) == 1


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_what_rests_on_nothing_lands_behind_the_other(
    client: Client, stock: Omnigraph, mode: str
) -> None:
    stock.branch_create(mode)
    path, body = ingest(mode, mode, part(f"new-{mode}"))
    with meanwhile(lambda: stock.load(lines([part("p1", stock=50)]), branch=mode, mode="merge")):
        done = document(client.post(path, body))
    assert done["tables"] == [{"table_key": "node:Part", "rows_loaded": 1}]
    assert stock_of(stock, mode) == 50
    assert done["commit"]["graph_commit_id"] == stock.head_commit_id_for_branch(mode)


def test_a_head_that_was_demanded_and_is_overtaken(client: Client, stock: Omnigraph) -> None:
    stock.branch_create("demanded")
    head = stock.head_commit_id_for_branch("demanded")
    body = {"query": SET, "params": {"to": 1}, "branch": "demanded"}
    demand = {"Omnigraph-If-Graph-Commit": head}
    with meanwhile(
        lambda: stock.load(lines([part("p2", stock=50)]), branch="demanded", mode="merge")
    ):
        refused = document(client.post("/mutate", body, headers=demand), 412)
    assert refused["precondition_failure"] == {
        "expected": head,
        "actual": stock.head_commit_id_for_branch("demanded"),
    }
