"""`omnigraph-server` as a process: how it starts, refuses to, logs, and stops."""

from __future__ import annotations

import json
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from omnigraph_core.errors import ConfigError
from omnigraph_core.server.main import _listening, cli
from omnigraph_core.server.options import ServerOptions, parse_bind
from omnigraph_core.server.serving import prepare
from tests.support.server import run_server, server_process, tokens
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import ServerProcess

NAMES = "query names() { match { $p: Person } return { $p.name } }"
INSERT = "query add($name: String) { insert Person { name: $name } }"


def test_what_stops_a_start(people: Omnigraph, tmp_path: Path) -> None:
    """Each with one message and its status, before anything is served."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bound = f"127.0.0.1:{taken.getsockname()[1]}"
        cases = [
            (64, "nothing to serve", (), {}),
            (1, "no graph at", (tmp_path / "none",), {}),
            (1, f"cannot listen on {bound}", (people.uri, "--bind", bound), {}),
            (1, "--unauthenticated", (), {"OMNIGRAPH_TARGET_URI": people.uri}),
            (1, "have the same token", (people.uri,), tokens(a="s3cret", b="s3cret")),
        ]  # fmt: skip

        def run(case: tuple[int, str, tuple[object, ...], dict[str, str]]) -> str:
            status, message, arguments, env = case
            done = run_server(*map(str, arguments), env=env, cwd=tmp_path)
            told = " ".join(done.stderr.split())
            problems = [done.returncode != status, message not in told, "Traceback" in told]
            problems += [bool(done.stdout), "s3cret" in told]
            return f"{arguments}: {done.returncode} {told}" if any(problems) else ""

        with ThreadPoolExecutor(2) as pool:
            assert [told for told in pool.map(run, cases) if told] == []


def test_an_address_is_taken_from_the_start() -> None:
    """Of two servers that start at the same time one is told that the other was first."""
    with _listening(parse_bind("127.0.0.1:0")) as first:
        address = parse_bind(f"127.0.0.1:{first.getsockname()[1]}")
        with pytest.raises(ConfigError, match=r"cannot listen on .*: Address already in use"):
            _listening(address)


def test_what_cannot_be_prepared(
    people: Omnigraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    policed = tmp_path / "policed.yaml"
    policed.write_text(f"graphs: {{p: {{uri: {people.uri}}}}}\npolicy: {{file: policy.yaml}}\n")
    broken = tmp_path / "broken.yaml"
    broken.write_text("server: [")
    monkeypatch.chdir(tmp_path)
    cases = {
        "bearer tokens": ServerOptions(config=policed),
        "not YAML": ServerOptions(config=broken),
        "cannot read configuration": ServerOptions(config=tmp_path / "none.yaml"),
        "graph 'x' not found in omnigraph.yaml": ServerOptions(target="x"),
        "URI must be provided": ServerOptions(bind="127.0.0.1:0"),
        "cannot listen on 'here'": ServerOptions(uri=people.uri, bind="here"),
        "--unauthenticated": ServerOptions(uri=people.uri, bind="0.0.0.0:0"),
    }
    for message, options in cases.items():
        with pytest.raises(ConfigError, match=re.escape(message)):
            prepare(options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--target", "x"), "exclude each other"), (("--workers", "0"), "--workers")],
)
def test_what_is_no_use_of_the_command(arguments: tuple[str, str], message: str) -> None:
    done = CliRunner().invoke(cli, ["graph", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_process_logs_every_request_and_finishes_what_is_under_way(people: Omnigraph) -> None:
    env = tokens(ann="token-of-ann")
    with server_process(people.uri, "--log-format", "json", env=env, is_cold=True) as server:
        with server.client("token-of-ann") as client:
            body = {"query_source": NAMES}
            assert client.post("/read?token=hush", body).status_code == 200
            assert client.get("/branches/none").status_code == 404
            text = client.get("/metrics").text
        with server.client("wrong-token") as client:
            assert client.get("/branches").status_code == 401
        assert finished_while_it_stops(server, "token-of-ann").startswith(b"HTTP/1.1 200")
        assert server.process.wait(120) == 0
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
        ["POST", "/read", 200, "ann"],
    ]
    assert all(item["ms"] > 0 and item["request_id"] for item in requests)
    log = "".join(server.log)
    assert not any(secret in log for secret in ("token-of-ann", "wrong-token", "hush"))
    assert 'omnigraph_http_requests_total{method="POST",route="/read",status="200"} 1.0' in text
    assert 'route="/branches/{branch}",status="404"} 1.0' in text
    assert "omnigraph_read_engine_seconds_count 1.0" in text


def finished_while_it_stops(server: ServerProcess, token: str) -> bytes:
    """The answer to a request whose body is still coming when the server is told to stop."""
    body = json.dumps({"query_source": NAMES}).encode()
    head = (
        f"POST /read HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(head.encode() + body[:10])
        begun = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert connection.recv(len(begun), socket.MSG_WAITALL) == begun
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: "Shutting down" in "".join(server.log), "the server to begin to stop")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), timeout=120)
        connection.sendall(body[10:])
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return answer


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


def test_an_address_in_the_environment_counts_before_the_name(
    people: Omnigraph, tmp_path: Path
) -> None:
    config = tmp_path / "omnigraph.yaml"
    config.write_text("graphs: {gone: {uri: gone}}\nserver: {graph: gone}\n")
    env = {
        "OMNIGRAPH_TARGET_URI": people.uri,
        "OMNIGRAPH_CONFIG": str(config),
        "OMNIGRAPH_TARGET": "gone",
        "OMNIGRAPH_BIND": "0.0.0.0:0",
        "OMNIGRAPH_UNAUTHENTICATED": "1",
    }
    with server_process(env=env, is_bound=False) as server, server.client() as client:
        assert server.url.startswith("http://0.0.0.0:")
        assert client.get("/branches").json() == client.get("/graphs/default/branches").json()
        assert client.get("/branches").status_code == 200
        assert server.stop(signal.SIGTERM) == 0
