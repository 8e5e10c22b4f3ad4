"""Several graphs behind one server: what is wrong with one is no trouble of another."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.server import graphs
from tests.support.served import document, ended, lines, new_stock, part, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server import Client

READ = {"query": "query skus() { match { $p: Part } return { $p.sku } }"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("graphs")
    for name in ("stock", "slow", "broken"):
        new_stock(root, name)
    (root / "omnigraph.yaml").write_text(
        "graphs:\n  stock: {uri: stock}\n  slow: {uri: slow}\n  broken: {uri: broken}\n"
        "  wrong: {uri: 's3://lake/a%b'}\nserver: {graph: stock, hides_uris: true}\n"
    )
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    with stock_server(root, config=root / "omnigraph.yaml") as client:
        yield client


def test_a_store_that_does_not_answer_holds_up_nobody_else(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More requests than there are readers wait for it, and all for one attempt."""
    opened, attempts, answers = graphs._opened, [], threading.Event()

    def opening(place: graphs.GraphPlace) -> Any:
        attempts.append(place)
        assert answers.wait(60)
        return opened(place)

    monkeypatch.setattr(graphs, "_opened", opening)
    monkeypatch.setattr(graphs, "OPEN_SECONDS", 1.0)
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(client.get, "/graphs/slow/branches") for _ in range(12)]
        assert document(client.post("/query", READ))["row_count"] == 4
        assert not any(request.done() for request in waiting)
        for request in waiting:
            late = document(request.result(), 503)
            assert (late["retryable"], "slow" in late["error"]) == (True, True)
            assert request.result().headers["retry-after"]
    assert len(attempts) == 1
    answers.set()
    monkeypatch.setattr(graphs, "OPEN_SECONDS", 60.0)
    assert document(client.get("/graphs/slow/branches"))["branches"] == ["main"]
    assert len(attempts) == 1


def test_a_graph_that_is_set_up_wrong_is_logged_and_not_to_be_tried_again(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    failed = client.get("/graphs/wrong/branches")
    assert "retryable" not in document(failed, 500)
    assert "retry-after" not in failed.headers
    assert "graph 'wrong' cannot be opened: 's3://lake/a%b' holds '%'" in caplog.text


def test_hidden_addresses_are_nowhere_in_errors_and_findings(root: Path, client: Client) -> None:
    assert document(client.post("/graphs/broken/query", READ))["row_count"] == 4
    shutil.rmtree(root / "broken" / "nodes")
    later = {"Prefer": "respond-async"}
    data = {"data": lines([part("p9")]).decode(), "mode": "merge"}
    verified = client.post("/graphs/broken/verify", {"deep": True})
    assert document(verified)["findings"]
    failed = [
        client.post("/graphs/broken/export", {"type_names": ["Part"]}),
        client.post("/graphs/broken/load", data),
        client.post(
            "/graphs/broken/mutate", {"query": "query d() { delete Part where stock = 4 }"}
        ),
    ]
    assert {answer.status_code for answer in failed} <= {500, 503}
    job = document(client.post("/graphs/broken/load", data, headers=later), 202)
    told = ended(client, {"job_id": job["job_id"]}, prefix="/graphs/broken")
    assert told["status"] == "failed"
    for text in (verified.text, str(told), *(answer.text for answer in failed)):
        assert str(root).strip("/") not in text
        assert "broken" in text
