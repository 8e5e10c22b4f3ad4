"""Uploads beyond what a JSON body may have, to a real process: on disk as they come, then a job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.raw_http import answers, connected, read_all
from tests.support.served import document, ended, new_stock, part
from tests.support.server import server_process
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import ServerProcess

LARGE: Final = 33_554_432
"""The most that a body with JSON in it may have."""
COUNT: Final = 10_000
ASYNC: Final = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("large")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def running(root: Path, stock: Omnigraph) -> Iterator[ServerProcess]:
    env = {"OMNIGRAPH_SERVER_SPOOL": str(root / "spool")}
    with server_process(stock.uri, env=env) as running:
        yield running


def records(prefix: str) -> Iterator[bytes]:
    """Lines with more bytes together than a JSON body may have."""
    name = "n" * (LARGE // COUNT + 300)
    for number in range(COUNT):
        yield json.dumps(part(f"{prefix}{number}", name=name)).encode() + b"\n"


def count(stock: Omnigraph, prefix: str) -> int:
    query = "query skus() { match { $p: Part } return { $p.sku as sku } }"
    found = stock.query("main", query).to_arrow().column("sku").to_pylist()
    return sum(sku.startswith(prefix) for sku in found)


def test_lines_are_loaded_whatever_their_length(running: ServerProcess, stock: Omnigraph) -> None:
    with running.client() as client:
        refused = client.post("/load", {"data": b"".join(records("line")).decode()})
        assert refused.status_code == 413
        answer = client.request("POST", "/load/ndjson?mode=merge", content=records("line"))
    assert document(answer)["nodes_loaded"] == COUNT
    assert count(stock, "line") == COUNT


def test_files_are_on_disk_before_they_are_whole(
    running: ServerProcess, root: Path, stock: Omnigraph
) -> None:
    """What has come takes disk and next to no memory; once all is there, a job loads it."""
    data = b"".join(records("file"))
    start = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
    end = b"\r\n--x--\r\n"
    head = (
        "POST /load/files?mode=merge HTTP/1.1\r\nHost: x\r\nPrefer: respond-async\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nConnection: close\r\n"
        f"Content-Length: {len(start) + len(data) + len(end)}\r\n\r\n"
    )
    before = running.peak_megabytes(is_new=True)
    with connected(running.url) as connection:
        connection.sendall(head.encode() + start + data)
        wait_until(lambda: on_disk(root) > LARGE, "all of the upload on disk")
        assert running.peak_megabytes() - before < 16
        connection.sendall(end)
        (answer,) = answers(read_all(connection))
    assert (answer.status, answer.headers["preference-applied"]) == (202, "respond-async")
    job = answer.json()
    assert (job["operation"], job["progress"]["bytes"]) == ("load", len(data))
    with running.client() as client:
        done: Any = ended(client, job)
    assert (done["status"], done["result"]["nodes_loaded"]) == ("done", COUNT), done
    assert done["progress"]["read"] == COUNT
    assert stock.get_run(job["run_id"]).status == "published"
    assert count(stock, "file") == COUNT
    uploads = root / "spool" / "uploads"
    wait_until(lambda: not any(uploads.iterdir()), "the upload to be removed")


def on_disk(root: Path) -> int:
    """Bytes of all uploads that have come so far."""
    files = (root / "spool" / "uploads").rglob("*.jsonl")
    return sum(path.stat().st_size for path in files)
