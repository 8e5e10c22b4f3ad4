"""`omnigraph-server` as a process: how it starts, refuses to, logs, and stops."""

from __future__ import annotations

import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.support.server import run_server, server_process, tokens

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

NAMES = "query names() { match { $p: Person } return { $p.name } }"
INSERT = "query add($name: String) { insert Person { name: $name } }"


def test_what_stops_a_start(people: Omnigraph, tmp_path: Path) -> None:
    """Each with one message and its status, before anything is served."""
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    policed = tmp_path / "policed.yaml"
    policed.write_text(f"graphs: {{p: {{uri: {people.uri}}}}}\npolicy: {{file: policy.yaml}}\n")
    broken = tmp_path / "broken.yaml"
    broken.write_text("server: [")
    empty = tmp_path / "empty"
    empty.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bound = f"127.0.0.1:{taken.getsockname()[1]}"
        cases = [
            (64, "nothing to serve", (), {}),
            (1, "bearer tokens", ("--config", policed), {}),
            (1, "not YAML", ("--config", broken), {}),
            (1, "cannot read configuration", ("--config", tmp_path / "none.yaml"), {}),
            (1, "graph 'x' not found in omnigraph.yaml", ("--target", "x"), {}),
            (1, "URI must be provided", ("--bind", "127.0.0.1:0"), {}),
            (1, "no graph at", (tmp_path / "none",), {}),
            (1, "cannot listen on 'here'", (people.uri, "--bind", "here"), {}),
            (1, f"cannot listen on {bound}", (people.uri, "--bind", bound), {}),
            (1, "--unauthenticated", (people.uri, "--bind", "0.0.0.0:0"), {}),
            (1, "--unauthenticated", (), {"OMNIGRAPH_TARGET_URI": people.uri}),
            (1, "have the same token", (people.uri,), tokens(a="s3cret", b="s3cret")),
            (2, "exclude each other", (people.uri, "--target", "x"), {}),
            (2, "--workers", (people.uri, "--workers", "0"), {}),
        ]  # fmt: skip

        def run(case: tuple[int, str, tuple[object, ...], dict[str, str]]) -> str:
            status, message, arguments, env = case
            done = run_server(*map(str, arguments), env=env, cwd=empty)
            told = " ".join(done.stderr.split())
            problems = [done.returncode != status, message not in told, "Traceback" in told]
            problems += [bool(done.stdout), "s3cret" in told]
            return f"{arguments}: {done.returncode} {told}" if any(problems) else ""

        with ThreadPoolExecutor(3) as pool:
            assert [told for told in pool.map(run, cases) if told] == []


def test_a_process_logs_every_request_and_stops_when_told(people: Omnigraph) -> None:
    env = tokens(ann="token-of-ann")
    with server_process(people.uri, "--log-format", "json", env=env) as server:
        with server.client("token-of-ann") as client:
            body = {"query_source": NAMES}
            assert client.post("/read?token=hush", body).status_code == 200
            assert client.get("/branches/none").status_code == 404
            text = client.get("/metrics").text
        with server.client("wrong-token") as client:
            assert client.get("/branches").status_code == 401
        assert server.stop() == 0
    records = [json.loads(line) for line in server.log]
    requests = [item for item in records if item["logger"] == "omnigraph.access"]
    told = [
        [item[key] for key in ("method", "path", "status", "actor")]
        for item in requests
        if item["path"] != "/readyz"
    ]
    assert told == [
        ["POST", "/read", 200, "ann"],
        ["GET", "/branches/none", 404, "ann"],
        ["GET", "/metrics", 200, "ann"],
        ["GET", "/branches", 401, ""],
    ]
    assert all(item["ms"] > 0 and item["request_id"] for item in requests)
    log = "".join(server.log)
    assert not any(secret in log for secret in ("token-of-ann", "wrong-token", "hush"))
    assert 'omnigraph_http_requests_total{method="POST",route="/read",status="200"} 1.0' in text
    assert 'route="/branches/{branch}",status="404"} 1.0' in text
    assert "omnigraph_read_engine_seconds_count 1.0" in text


def test_what_is_under_way_is_finished(people: Omnigraph) -> None:
    """A request whose body is still coming when the server is told to stop."""
    body = json.dumps({"query_source": NAMES}).encode()
    head = (
        f"POST /read HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with server_process(people.uri) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(head.encode() + body[:10])
            time.sleep(0.2)  # so that the request has begun
            server.process.send_signal(signal.SIGINT)
            while "Shutting down" not in "".join(server.log):
                time.sleep(0.01)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, int(port)), timeout=60)
            connection.sendall(body[10:])
            answer = b""
            while part := connection.recv(65_536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200")
        assert server.process.wait(60) == 0


def test_graphs_and_address_from_the_environment(people: Omnigraph, tmp_path: Path) -> None:
    config = tmp_path / "omnigraph.yaml"
    config.write_text(
        f"graphs: {{stock: {{uri: {people.uri}}}, gone: {{uri: gone}}}}\n"
        "auth: {env_file: tokens.env}\n"
    )
    (tmp_path / "tokens.env").write_text("export OMNIGRAPH_SERVER_BEARER_TOKEN='from-the-file'\n")
    env = {
        "OMNIGRAPH_CONFIG": str(config),
        "OMNIGRAPH_TARGET": "stock",
        "OMNIGRAPH_BIND": "127.0.0.1:0",
        "OMNIGRAPH_SOURCE_VERSION": "abc123",
    }
    with (
        server_process(env=env, is_bound=False) as server,
        server.client("from-the-file") as client,
    ):
        health = client.get("/healthz").json()
        assert list(health) == ["status", "version", "source_version", "omnigraph_version"]
        assert health["source_version"] == "abc123"
        assert client.get("/graphs/stock/branches").status_code == 200
        assert client.get("/graphs/gone/branches").status_code == 404


def test_workers_answer_and_write_together(people: Omnigraph) -> None:
    people.branch_create("crowd")
    before = len(people.list_commits("crowd"))
    with server_process(people.uri, "--workers", "2") as server:

        def write(number: int) -> int:
            body = {
                "query_source": INSERT,
                "params": {"name": f"worker-{number}"},
                "branch": "crowd",
            }
            with server.client() as client:
                return int(client.post("/change", body).status_code)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(write, range(16))) == [200] * 16
        with server.client() as client:
            text = client.get("/metrics").text
            rows = client.post("/read", {"query_source": NAMES, "branch": "crowd"}).json()["rows"]
        assert 'route="/change",status="200"} 16.0' in text
        assert sum(row["p.name"].startswith("worker-") for row in rows) == 16
        assert server.stop() == 0
    assert len(people.list_commits("crowd")) == before + 16
