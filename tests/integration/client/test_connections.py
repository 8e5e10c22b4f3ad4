"""What goes over the wire and what becomes of it when servers, proxies and networks fail."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from omnigraph_core import connect
from omnigraph_core.client import retries
from omnigraph_core.client.remote import RemoteGraph
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    ConflictError,
    NotFoundError,
    PolicyDenied,
    QueryCancelled,
    StorageError,
    Unauthenticated,
)
from omnigraph_core.exec.guard import Cancellation
from omnigraph_core.ids import is_ulid
from tests.integration.client.conftest import RECORDS, SCHEMA, Pair, lines
from tests.integration.client.scripted import Reply, document, scripted
from tests.support.counting_proxy import CountingProxy
from tests.support.server import serving, tokens
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROW = "query grow($sku: String) { insert Part { sku: $sku } }"
PARTS = "query parts() { match { $p: Part } return { $p.sku } }"
PAGE = Reply(200, b"<html>please\n log in</html>", {"Content-Type": "text/html; charset=utf-8"})
BRANCHES = document(branches=["main"])
UNKNOWN = document(404, error="no branch `x`", code="not_found", reason="not_found.branch",
                   request_id="r-1")  # fmt: skip
BUSY = document(429, {"Retry-After": "0"}, error="too many", code="too_many_requests")
DOWN = document(503, {"Retry-After": "0"}, error="not now", code="internal",
                reason="storage.failed", retryable=True)  # fmt: skip
GATEWAY = Reply(502, b"<h1>Bad Gateway</h1>", {"Content-Type": "text/html"})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_FIRST_WAIT", 0.001)


@pytest.fixture(scope="module")
def proxy(pair: Pair) -> Iterator[CountingProxy]:
    port = urlsplit(pair.url).port
    assert port is not None
    with CountingProxy(port) as proxy:
        yield proxy


@pytest.fixture
def through(proxy: CountingProxy) -> Iterator[RemoteGraph]:
    """The graph behind a network that loses answers."""
    proxy.restore()
    proxy.clear()
    with RemoteGraph(proxy.endpoint) as graph:
        yield graph


def test_a_mutation_whose_answer_is_lost_is_done_once(
    pair: Pair, through: RemoteGraph, proxy: CountingProxy
) -> None:
    branch = pair.fork("lost")
    proxy.lose_next_response("POST", "/mutate", times=2)
    done = through.mutate(GROW, {"sku": "x"}, branch=branch)
    assert (done.affected_nodes, done.is_repeat) == (1, True)
    assert [request.method for request in proxy.requests] == ["POST"] * 3
    commits = pair.local.list_commits(branch)
    assert commits[0].graph_commit_id == done.commit_id
    assert commits[1].operation == "load"


def test_a_load_whose_answer_is_lost_is_done_once(
    pair: Pair, through: RemoteGraph, proxy: CountingProxy, tmp_path: Path
) -> None:
    branch = pair.fork("lost-load")
    path = tmp_path / "more.jsonl"
    path.write_bytes(lines({"type": "Bin", "data": {"code": "l1"}}))
    for data in (path, [path, path.read_bytes().replace(b"l1", b"l2")]):
        proxy.lose_next_response("POST", "/load")
        before = loads(pair, branch)
        done = through.load(data, branch=branch)
        assert done.nodes_loaded == (1 if data is path else 2)
        assert loads(pair, branch) == before + 1


def loads(pair: Pair, branch: str) -> int:
    return sum(commit.operation == "load" for commit in pair.local.list_commits(branch))


def test_other_writes_get_the_first_answer_again(
    pair: Pair, through: RemoteGraph, proxy: CountingProxy
) -> None:
    proxy.lose_next_response("POST", "/branches")
    made = through.branch_create("made-once")
    assert made == pair.local.branch_get("made-once")
    proxy.lose_next_response("DELETE", "/branches")
    through.branch_delete("made-once")
    with pytest.raises(BranchNotFound):
        pair.local.branch_get("made-once")
    run = through.begin_run()
    proxy.lose_next_response("POST", "/abort")
    assert through.abort_run(run.run_id).status == "aborted"


def test_reads_are_asked_again(through: RemoteGraph, proxy: CountingProxy) -> None:
    proxy.lose_next_response("POST", "/query", times=3)
    assert through.query("main", PARTS).num_rows == 3
    proxy.lose_next_response("GET", "/branches", times=None)
    with pytest.raises(StorageError, match="connection broke off") as problem:
        through.branch_list()
    assert problem.value.retryable
    assert len(proxy.requests) == 4 + 4


def test_a_write_that_stays_unanswered_tells_its_key(
    pair: Pair, through: RemoteGraph, proxy: CountingProxy
) -> None:
    branch = pair.fork("unanswered")
    proxy.lose_next_response("POST", "/mutate", times=None)
    with pytest.raises(StorageError) as problem:
        through.mutate(GROW, {"sku": "x"}, branch=branch)
    key = str(problem.value.hint).rpartition("=")[2]
    assert is_ulid(key)
    proxy.restore()
    again = through.mutate(GROW, {"sku": "x"}, branch=branch, idempotency_key=key)
    assert again.is_repeat


def test_no_server() -> None:
    with scripted(BRANCHES) as script:
        url = script.url
    with RemoteGraph(url) as graph, pytest.raises(StorageError, match="cannot reach") as problem:
        graph.mutate(GROW)
    assert problem.value.retryable
    assert url in problem.value.message


def test_what_is_sent() -> None:
    with scripted(BRANCHES) as script:
        with connect(f"{script.url}/graphs/stock/", token="se-cret") as graph:
            assert graph.uri == f"{script.url}/graphs/stock"
            assert "se-cret" not in repr(graph) + repr(graph._http) + str(vars(graph))  # type: ignore[union-attr]
            graph.branch_list()
            graph.branch_list()
        script.replies[:] = [UNKNOWN]
        with RemoteGraph(script.url) as graph, pytest.raises(BranchNotFound):
            graph.branch_delete("x")
    first, second, third = script.asked
    assert first.path == "/graphs/stock/branches"
    assert first.headers["Authorization"] == "Bearer se-cret"
    assert "Idempotency-Key" not in first.headers
    assert "gzip" in first.headers["Accept-Encoding"]
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    assert "Authorization" not in third.headers
    assert is_ulid(third.headers["Idempotency-Key"])


def test_busy_servers_are_asked_again() -> None:
    with scripted(BUSY, DOWN, GATEWAY, BRANCHES) as script, RemoteGraph(script.url) as graph:
        assert graph.branch_list() == ("main",)
        assert len(script.asked) == 4
    with scripted(BUSY, DOWN) as script, RemoteGraph(script.url) as graph:
        with pytest.raises(StorageError, match="not now"):
            graph.branch_delete("x")
        assert len(script.asked) == 2, "a write that may have begun is not repeated on its own"
    with scripted(BUSY) as script, RemoteGraph(script.url) as graph:
        with pytest.raises(StorageError, match="too many") as problem:
            graph.branch_list()
        assert problem.value.retryable
        assert len(script.asked) == 4
    slow = document(429, {"Retry-After": "3600"}, error="too many", code="too_many_requests")
    with scripted(slow) as script, RemoteGraph(script.url) as graph:
        with pytest.raises(StorageError):
            graph.branch_list()
        assert len(script.asked) == 1


def test_a_repeat_waits_for_the_first_request() -> None:
    under_way = document(409, error="under way", code="conflict", reason="conflict", retryable=True)
    gone = document(uri="u", name="x", actor_id=None)
    with scripted(GATEWAY, under_way, gone) as script, RemoteGraph(script.url) as graph:
        graph.branch_delete("x")
        assert len({asked.headers["Idempotency-Key"] for asked in script.asked}) == 1
    with scripted(under_way) as script, RemoteGraph(script.url) as graph:
        with pytest.raises(ConflictError, match="under way"):
            graph.branch_delete("x")
        assert len(script.asked) == 1


def test_answers_of_somebody_else() -> None:
    with scripted(PAGE) as script, RemoteGraph(script.url) as graph:
        with pytest.raises(StorageError, match="answered 200 with text/html, not with JSON"):
            graph.branch_list()
        with pytest.raises(StorageError, match="please log in"):
            graph.query("main", PARTS)
        with pytest.raises(StorageError, match="answered 200"):
            list(graph.export_jsonl())
        script.replies[:] = [document(detail="Not Found")]
        with pytest.raises(StorageError, match="cannot be understood: it has no 'branches'"):
            graph.branch_list()
        script.replies[:] = [Reply(body=b"[1]")]
        with pytest.raises(StorageError, match="cannot be understood"):
            graph.get_commit("x")
        script.replies[:] = [document(404, detail="Not Found")]
        with pytest.raises(StorageError, match="answered 404"):
            graph.branch_list()
        moved = {"Location": "https://other.example.org/login?token=1"}
        script.replies[:] = [Reply(301, b"", moved)]
        with pytest.raises(ConfigError, match=r"moved to https://other.example.org/login\n"):
            graph.branch_list()


def test_an_answer_that_breaks_off() -> None:
    rows = Reply(200, b"0" * 1000, {"Content-Type": "application/x-ndjson"}, is_cut=True)
    with scripted(rows) as script, RemoteGraph(script.url) as graph:
        lines = graph.export_jsonl()
        with pytest.raises(StorageError, match="connection broke off"):
            list(lines)
        arrow = {"Content-Type": "application/vnd.apache.arrow.stream"}
        script.replies[:] = [Reply(200, b"\xff\xff\xff\xff" * 99, arrow, is_cut=True)]
        with pytest.raises(StorageError):
            graph.query("main", PARTS)
        script.replies[:] = [Reply(200, b"no arrow at all", arrow)]
        with pytest.raises(StorageError, match="damaged"):
            graph.query("main", PARTS)


def test_a_server_that_does_not_answer() -> None:
    never = threading.Event()
    try:
        with scripted(Reply(held=never)) as script:
            with (
                RemoteGraph(script.url, timeout=0.2) as graph,
                pytest.raises(StorageError, match="no answer in time"),
            ):
                graph.branch_list()
            assert script.gone.wait(120), "the server is told by the end of the connection"
            assert len(script.asked) == 1
            script.gone.clear()
            done = Cancellation()

            def cancel() -> None:
                wait_until(lambda: len(script.asked) == 2, "the question to reach the server")
                done.cancel()

            with ThreadPoolExecutor(1) as pool, RemoteGraph(script.url) as graph:
                cancelling = pool.submit(cancel)
                with pytest.raises(QueryCancelled):
                    graph.query("main", PARTS, cancellation=done)
                cancelling.result()
            assert script.gone.wait(120), "and so it is told that nobody waits any more"
    finally:
        never.set()


def test_an_error_names_its_request() -> None:
    with (
        scripted(UNKNOWN) as script,
        RemoteGraph(script.url) as graph,
        pytest.raises(BranchNotFound) as problem,
    ):
        graph.branch_get("x")
    assert problem.value.__notes__ == ["request r-1"]
    assert str(problem.value) == "no branch `x`"


def test_many_threads_share_a_handle(pair: Pair) -> None:
    branches = [pair.fork(f"t{number}") for number in range(4)]
    with RemoteGraph(pair.url) as graph, ThreadPoolExecutor(8) as pool:
        reads = [pool.submit(graph.query, "main", PARTS) for _ in range(24)]
        writes = [
            pool.submit(graph.mutate, GROW, {"sku": f"new-{name}"}, branch=name)
            for name in branches
        ]
        assert {read.result().num_rows for read in reads} == {3}
        assert {write.result().affected_nodes for write in writes} == {1}


POLICY = """
version: 1
groups: { readers: [ada] }
rules:
  - id: reading
    allow: { actors: { group: readers }, actions: [read], branch_scope: any }
"""


def test_tokens_and_rights(tmp_path: Path) -> None:
    uri = str(tmp_path / "stock")
    with Omnigraph.init(uri, SCHEMA) as local:
        local.load(lines(*RECORDS), embed="off")
    (tmp_path / "policy.yaml").write_text(POLICY)
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"graphs: {{stock: {{uri: {uri}}}}}\nserver: {{graph: stock}}\n"
                      "policy: {file: policy.yaml}\n")  # fmt: skip
    with serving(config=config, env=tokens(ada="ada-token", bob="bob-token")) as server:
        with RemoteGraph(f"{server.url}/graphs/stock", token=" ada-token\n") as graph:
            assert graph.query("main", PARTS).num_rows == 3
            with pytest.raises(PolicyDenied) as problem:
                graph.mutate(GROW, {"sku": "x"})
        denied = problem.value
        assert (denied.actor, denied.action, denied.branch) == ("ada", "change", "main")
        with (
            RemoteGraph(server.url, token="wrong-token") as graph,
            pytest.raises(Unauthenticated, match="invalid bearer token") as refused,
        ):
            graph.branch_list()
        assert "wrong-token" not in str(refused.value) + repr(refused.value)
        with closing(RemoteGraph(server.url)) as graph, pytest.raises(Unauthenticated):
            graph.branch_list()
        nowhere = RemoteGraph(f"{server.url}/graphs/none", token="ada-token")
        with nowhere as graph, pytest.raises(NotFoundError):
            graph.branch_list()


def test_connect_opens_either(pair: Pair) -> None:
    with connect(pair.local.uri, actor="ada") as graph:
        assert isinstance(graph, Omnigraph)
    with connect(pair.url) as graph:
        assert isinstance(graph, RemoteGraph)
        assert graph.branch_list() == pair.local.branch_list()
        graph.close()
        assert graph.branch_list(), "it may be used again"
    with pytest.raises(ConfigError, match="the token says who acts"):
        connect(pair.url, actor="ada")
    with pytest.raises(ConfigError, match="behind a server"):
        connect(pair.local.uri, token="t")
