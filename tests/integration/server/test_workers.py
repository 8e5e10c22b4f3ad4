"""Several processes behind one address: they write together, see the same, and stop together."""

from __future__ import annotations

import os
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.raw_http import answers, connected, read_all
from tests.support.served import document, lines, new_stock, part
from tests.support.server import ServerProcess, server_process
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

WORKERS: Final = 2
WRITERS: Final = 4
WRITES: Final = 5
ADD: Final = "query add($sku: String, $n: I64) { insert Part { sku: $sku, name: $sku, stock: $n } }"
READ: Final = "query all() { match { $p: Part } return { $p.sku, $p.stock } }"
ASYNC: Final = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    graph = new_stock(root)
    graph.branch_create("crowd")
    graph.branch_create("keyed")
    return graph


@pytest.fixture(scope="module")
def running(root: Path, stock: Omnigraph) -> Iterator[ServerProcess]:
    env = {"OMNIGRAPH_SERVER_SPOOL": str(root / "spool")}
    with server_process(stock.uri, "--workers", str(WORKERS), env=env, is_cold=True) as running:
        wait_until(lambda: len(pids(running)) == WORKERS, "all workers")
        yield running


def pids(running: ServerProcess) -> list[int]:
    found = re.findall(r"Started server process \[(\d+)\]", "".join(running.log))
    return [int(pid) for pid in found]


@contextmanager
def answered_by(running: ServerProcess, place: int) -> Iterator[Client]:
    """Only one of the workers goes on while the block runs."""
    others = [pid for number, pid in enumerate(pids(running)) if number != place]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        with running.client() as client:
            yield client
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def stock_of(client: Client, branch: str) -> dict[str, int]:
    rows = document(client.post("/read", {"query_source": READ, "branch": branch}))["rows"]
    return {row["p.sku"]: row["p.stock"] for row in rows}


def test_writers_of_all_workers_lose_nothing(running: ServerProcess, stock: Omnigraph) -> None:
    before = len(stock.list_commits("crowd"))
    with running.client() as client:
        start = sum(value or 0 for value in stock_of(client, "crowd").values())

    def write(writer: int) -> list[int]:
        statuses = []
        for number in range(WRITES):
            with running.client() as client:  # a connection each, so that all workers are met
                n = writer * 100 + number
                body = {
                    "query_source": ADD, "branch": "crowd", "params": {"sku": f"w{n}", "n": n},
                }  # fmt: skip
                statuses.append(int(client.post("/change", body).status_code))
        return statuses

    with ThreadPoolExecutor(WRITERS) as pool:
        found = list(pool.map(write, range(WRITERS)))
    assert found == [[200] * WRITES] * WRITERS
    expected = {f"w{w * 100 + n}": w * 100 + n for w in range(WRITERS) for n in range(WRITES)}
    for place in range(WORKERS):
        with answered_by(running, place) as client:
            held = stock_of(client, "crowd")
        assert {sku: n for sku, n in held.items() if sku.startswith("w")} == expected
        assert sum(n or 0 for n in held.values()) == start + sum(expected.values())
    assert len(stock.list_commits("crowd")) == before + WRITERS * WRITES


def test_a_key_counts_with_every_worker(running: ServerProcess, stock: Omnigraph) -> None:
    headers = {"Idempotency-Key": "once"}
    body = {"query_source": ADD, "branch": "keyed", "params": {"sku": "k1", "n": 1}}
    found, forks = [], []
    for place in range(WORKERS):
        with answered_by(running, place) as client:
            found.append(document(client.post("/change", body, headers=headers)))
            forks.append(client.post("/branches", {"name": "forked-once"}, headers=headers))
    assert [answer["repeated"] for answer in found] == [False, True]
    assert found[0]["commit"] == found[1]["commit"]
    assert [answer.status_code for answer in forks] == [200, 200]
    assert forks[0].json() == forks[1].json()


def test_what_one_worker_writes_the_others_read_at_once(running: ServerProcess) -> None:
    for place in range(WORKERS):
        with answered_by(running, place) as client:
            body = {"query_source": ADD, "params": {"sku": f"seen{place}", "n": 1}}
            commit = document(client.post("/change", body))["commit"]["graph_commit_id"]
        with answered_by(running, WORKERS - 1 - place) as client:
            assert f"seen{place}" in stock_of(client, "main")
            assert document(client.get("/commits"))["commits"][0]["graph_commit_id"] == commit


def test_jobs_are_seen_from_every_worker(running: ServerProcess, stock: Omnigraph) -> None:
    with answered_by(running, 0) as client:
        data = lines(part(f"job{n}") for n in range(50))
        answer = client.request("POST", "/load/ndjson", content=data, headers=ASYNC)
        job: Any = document(answer, 202)
        path = f"/jobs/{job['job_id']}"
        wait_until(lambda: document(client.get(path))["status"] == "done", "the end of the job")
        told = document(client.get(path))
    with answered_by(running, 1) as client:
        assert document(client.get(path)) == told
        assert [item["job_id"] for item in document(client.get("/jobs"))["jobs"]] == [job["job_id"]]
        assert client.post(f"{path}/cancel").status_code == 409
    assert told["result"]["tables"] == [{"table_key": "node:Part", "rows_loaded": 50}]


def test_figures_are_those_of_all_workers(running: ServerProcess) -> None:
    for place in range(WORKERS):
        with answered_by(running, place) as client:
            for _ in range(3):
                assert client.get("/tags").status_code == 200
    with running.client() as client:  # a request is counted behind its answer
        wait_until(lambda: in_figures(client) == [["6.0"], ["1.0"]], "the figures of all requests")
    for place in range(WORKERS):
        with answered_by(running, place) as client:
            assert in_figures(client)[0] == ["6.0"]


def in_figures(client: Client) -> list[list[str]]:
    """How many lists of tags were asked for, and what is under way."""
    text = client.get("/metrics").text
    return [
        re.findall(r'omnigraph_http_requests_total\{[^}]*"/tags"[^}]*\} (\S+)', text),
        re.findall(r"(?m)^omnigraph_http_requests_in_flight (\S+)", text),
    ]


def test_a_worker_that_dies_is_replaced(running: ServerProcess) -> None:
    gone = pids(running)[0]
    os.kill(gone, signal.SIGKILL)
    wait_until(lambda: len(pids(running)) == WORKERS + 1, "another worker")
    with running.client() as client:
        wait_until(lambda: client.get("/branches").status_code == 200, "an answer")


def test_all_of_them_stop_when_told(running: ServerProcess) -> None:
    """What is under way is answered first."""
    data = lines(part(f"late{n}") for n in range(20_000))
    head = (
        "POST /load/ndjson HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Length: {len(data)}\r\nExpect: 100-continue\r\n\r\n"
    )
    begun = b"HTTP/1.1 100 Continue\r\n\r\n"
    with connected(running.url) as connection:
        connection.sendall(head.encode())
        assert connection.recv(len(begun), socket.MSG_WAITALL) == begun
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "Shutting down" in "".join(running.log), "the workers to begin to stop")
        connection.sendall(data)
        (answer,) = answers(read_all(connection))
    assert answer.status == 200, answer.body
    assert running.process.wait(120) == 0
    wait_until(lambda: not any(is_there(pid) for pid in pids(running)), "the end of all workers")
    assert "Traceback" not in "".join(running.log)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
