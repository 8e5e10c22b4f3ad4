"""Several graphs behind one server: what is wrong with one is no trouble of another."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.server import graphs
from tests.support.served import document, ended, lines, new_stock, part, stock_server
from tests.support.waiting import wait_until

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
        assert answers.wait(120)
        return opened(place)

    monkeypatch.setattr(graphs, "_opened", opening)
    monkeypatch.setattr(graphs, "OPEN_SECONDS", 120.0)
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(client.get, "/graphs/slow/branches") for _ in range(12)]
        # The request for the figures is one itself.
        wait_until(lambda: in_flight(client) > len(waiting), "all requests to be under way")
        assert document(client.post("/query", READ))["row_count"] == 4
        monkeypatch.setattr(graphs, "OPEN_SECONDS", 0.05)
        late = client.get("/graphs/slow/branches")
        assert (document(late, 503)["retryable"], late.headers["retry-after"]) == (True, "1")
        assert "graph 'slow' is still being opened" in document(late, 503)["error"]
        assert not any(request.done() for request in waiting)
        answers.set()
        for request in waiting:
            assert document(request.result())["branches"] == ["main"]
    assert len(attempts) == 1


def in_flight(client: Client) -> float:
    figures = client.get("/metrics").text.splitlines()
    return next(
        float(line.split()[-1]) for line in figures if "in_flight" in line and "#" not in line
    )


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
