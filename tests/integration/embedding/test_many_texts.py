"""Batches in parallel, progress, failures midway, and vectors that need no request."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.embedding.embedder import Embedder, Task
from omnigraph_core.embedding.limits import Limits, shared_limiter
from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.errors import ConfigError, EmbeddingError
from tests.support.embedding_server import EmbeddingServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Connect = Callable[..., Embedder]

TEXTS = [f"text {number}" for number in range(12)]


def embed(embedder: Embedder, texts: list[str], task: Task = Task.DOCUMENT) -> np.ndarray:
    return embedder.embed(texts, dimension=4, task=task)


def test_requests_run_at_once_up_to_the_limit(connect: Connect) -> None:
    with EmbeddingServer(gate=3) as server:
        embedder = connect(
            server.url, "gemini", OMNIGRAPH_EMBED_BATCH="1", OMNIGRAPH_EMBED_CONCURRENCY="3"
        )
        found = embed(embedder, TEXTS)
    assert server.peak == 3
    assert len(server.requests) == 12
    np.testing.assert_allclose(found, mock_vectors(TEXTS, 4), atol=1e-6)


def test_the_limit_holds_for_all_callers_together(connect: Connect) -> None:
    with EmbeddingServer(gate=2) as server:
        embedder = connect(
            server.url, "gemini", OMNIGRAPH_EMBED_BATCH="1", OMNIGRAPH_EMBED_CONCURRENCY="2"
        )
        callers = [
            threading.Thread(target=embed, args=(embedder, TEXTS[start::3])) for start in range(3)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert server.peak == 2
    assert sorted(server.texts) == sorted(TEXTS)


def test_every_request_of_a_process_is_let_go_by_one_limiter(
    server: EmbeddingServer, connect: Connect
) -> None:
    """Also one that is repeated, and those of another embedder."""
    limits = {"OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE": "60000", "OMNIGRAPH_EMBED_BATCH": "1"}
    server.queue(Reply(status=429, headers={"retry-after": "0.01"}, body={}))
    embed(connect(server.url, "openai", **limits), TEXTS)
    embed(connect(server.url, "openai", **limits), TEXTS)
    assert shared_limiter(server.url, Limits(60_000)).granted == len(server.requests) == 25


@pytest.mark.parametrize("text", ["many", "0", "-1"])
def test_a_limit_that_is_none_is_refused(connect: Connect, text: str) -> None:
    embedder = connect("http://127.0.0.1:1", "openai", OMNIGRAPH_EMBED_TOKENS_PER_MINUTE=text)
    with pytest.raises(ConfigError, match="OMNIGRAPH_EMBED_TOKENS_PER_MINUTE"):
        embed(embedder, TEXTS)


def test_progress_counts_every_text_once(
    server: EmbeddingServer, connect: Connect, tmp_path: Path
) -> None:
    embedder = connect(
        server.url,
        "openai",
        OMNIGRAPH_EMBED_BATCH="2",
        OMNIGRAPH_EMBED_CACHE=str(tmp_path / "cache"),
    )
    embed(embedder, ["a", "b", "c"])
    counts: list[int] = []
    threads: set[int] = set()

    def on_done(count: int) -> None:
        counts.append(count)
        threads.add(threading.get_ident())

    texts = ["a", "d", "a", "e", "d", "f", "b"]
    embedder.embed(texts, dimension=4, task=Task.DOCUMENT, on_done=on_done)
    assert counts[0] == 3, "cached ones first: a twice and b"
    assert sorted(counts[1:]) == [1, 3]
    assert threads == {threading.get_ident()}


def test_the_first_failure_stops_the_rest(server: EmbeddingServer, connect: Connect) -> None:
    server.queue(Reply(400, {"error": {"message": "too long"}}))
    embedder = connect(
        server.url, "openai", OMNIGRAPH_EMBED_BATCH="1", OMNIGRAPH_EMBED_CONCURRENCY="1"
    )
    with pytest.raises(EmbeddingError, match="too long"):
        embed(embedder, TEXTS)
    embedder.close()
    assert len(server.requests) < len(TEXTS)


def test_a_failure_ends_the_waits_of_other_requests(connect: Connect) -> None:
    with EmbeddingServer(gate=2) as server:  # else the first answer has the second request wait
        server.queue(
            Reply(429, {"error": {"message": "busy"}}, {"retry-after": "3600"}),
            Reply(400, {"error": {"message": "too long"}}),
        )
        embedder = connect(
            server.url, "openai", OMNIGRAPH_EMBED_BATCH="1", OMNIGRAPH_EMBED_CONCURRENCY="2"
        )
        with pytest.raises(EmbeddingError, match="too long"):
            embed(embedder, ["a", "b"])
        embedder.close()  # waits for every thread
        assert len(server.requests) == 2


def test_what_was_answered_before_a_failure_is_kept(
    server: EmbeddingServer, connect: Connect, tmp_path: Path
) -> None:
    settings = {
        "OMNIGRAPH_EMBED_BATCH": "2",
        "OMNIGRAPH_EMBED_CONCURRENCY": "1",
        "OMNIGRAPH_EMBED_CACHE": str(tmp_path / "cache"),
        "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "1",
    }
    embedder = connect(server.url, "openai", **settings)
    embed(embedder, ["a", "b"])
    server.queue(Reply(500, {}))
    with pytest.raises(EmbeddingError):
        embed(embedder, ["a", "b", "c", "d"])
    found = embed(embedder, ["a", "b", "c", "d"])
    assert [request.texts for request in server.requests] == [["a", "b"], ["c", "d"], ["c", "d"]]
    np.testing.assert_allclose(found, mock_vectors(["a", "b", "c", "d"], 4), atol=1e-6)


def test_a_known_text_needs_no_request(
    server: EmbeddingServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    cache = str(tmp_path / "deep" / "cache")
    first = embed(connect(server.url, "gemini", OMNIGRAPH_EMBED_CACHE=cache), TEXTS)
    asked = len(server.requests)
    again = connect(server.url, "gemini")
    monkeypatch.delenv("GEMINI_API_KEY")
    second = embed(again, list(reversed(TEXTS)))
    assert len(server.requests) == asked
    assert second.tolist() == first[::-1].tolist()
    with pytest.raises(EmbeddingError, match="GEMINI_API_KEY is not set"):
        embed(again, ["unknown"])


def test_the_cache_tells_apart_what_gives_other_vectors(
    server: EmbeddingServer, connect: Connect, tmp_path: Path
) -> None:
    embedder = connect(server.url, "gemini", OMNIGRAPH_EMBED_CACHE=str(tmp_path / "cache"))
    for _ in range(2):
        embedder.embed(["a"], dimension=4, task=Task.DOCUMENT)
        embedder.embed(["a"], dimension=4, task=Task.QUERY)
        embedder.embed(["a"], dimension=5, task=Task.DOCUMENT)
        embedder.embed(["a"], dimension=4, task=Task.DOCUMENT, model="other")
    assert len(server.requests) == 4


def test_openai_knows_no_tasks(server: EmbeddingServer, connect: Connect, tmp_path: Path) -> None:
    embedder = connect(server.url, "openai", OMNIGRAPH_EMBED_CACHE=str(tmp_path / "cache"))
    assert (
        embed(embedder, ["a"], Task.DOCUMENT).tolist()
        == embed(embedder, ["a"], Task.QUERY).tolist()
    )
    assert len(server.requests) == 1


SCRIPT = """
from omnigraph_core.embedding.embedder import Embedder, Task
embedder = Embedder.from_settings()
found = embedder.embed([f"text {n}" for n in range(12)], dimension=4, task=Task.DOCUMENT)
embedder.close()
print(found.tolist())
"""


def test_the_cache_is_shared_by_processes(
    server: EmbeddingServer, connect: Connect, tmp_path: Path
) -> None:
    embedder = connect(server.url, "openai", OMNIGRAPH_EMBED_CACHE=str(tmp_path / "cache"))
    command = [sys.executable, "-c", SCRIPT]
    made = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ))
    asked = len(server.requests)
    assert sorted(server.texts) == sorted(TEXTS)
    found = embed(embedder, TEXTS)
    assert len(server.requests) == asked
    assert made.stdout.strip() == str(found.tolist())


def test_processes_may_write_the_cache_at_once(
    server: EmbeddingServer, connect: Connect, tmp_path: Path
) -> None:
    settings = {
        "OMNIGRAPH_EMBED_BATCH": "1",
        "OMNIGRAPH_EMBED_CACHE": str(tmp_path / "cache"),
    }
    embedder = connect(server.url, "gemini", **settings)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        for _ in range(3)
    ]
    results = [writer.communicate() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert {errors for _, errors in results} == {""}, "no process did without the cache"
    asked = len(server.requests)
    found = embed(embedder, TEXTS)
    assert len(server.requests) == asked
    assert {output.strip() for output, _ in results} == {str(found.tolist())}
