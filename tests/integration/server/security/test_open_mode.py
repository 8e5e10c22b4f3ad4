"""A server without tokens: for this machine alone, unless that others may come is said."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.server.options import ServerOptions
from omnigraph_core.server.serving import prepare
from tests.integration.server.security.asking import INSERT
from tests.support.server import run_server, server_process, tokens

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

FAR = ("0.0.0.0:0", "[::]:0", "192.0.2.7:0", "host.example.org:0", "[::ffff:0.0.0.0]:0", "127.1:0")
NEAR = ("127.0.0.1:0", "[::1]:0", "localhost:0", "127.8.9.10:0")
REFUSED = "without bearer tokens everybody who reaches"


@pytest.mark.parametrize("bind", FAR)
def test_others_do_not_reach_an_open_server(
    stock: Omnigraph, bind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the address comes from."""
    config = tmp_path / "omnigraph.yaml"
    config.write_text(
        json.dumps({"graphs": {"stock": {"uri": stock.uri}}, "server": {"bind": bind}})
    )
    monkeypatch.chdir(tmp_path)
    given = ServerOptions(uri=stock.uri, bind=bind, config=config)
    for options in (given, ServerOptions(config=config)):
        with pytest.raises(ConfigError, match=REFUSED):
            prepare(options)
    is_allowed = ServerOptions(config=config, is_open_allowed=True)
    assert prepare(is_allowed).is_open
    monkeypatch.setenv(*next(iter(tokens(ann="t").items())))
    assert not prepare(given).is_open


@pytest.mark.parametrize("bind", NEAR)
def test_this_machine_reaches_an_open_server(
    stock: Omnigraph, bind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert prepare(ServerOptions(uri=stock.uri, bind=bind)).is_open


def test_processes_that_others_would_reach(stock: Omnigraph, tmp_path: Path) -> None:
    everywhere = ("--bind", "0.0.0.0:0")
    refused = run_server(stock.uri, *everywhere, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert REFUSED in refused.stderr
    assert "--unauthenticated" in refused.stderr
    with server_process(stock.uri, *everywhere, "--unauthenticated", cwd=tmp_path) as server:
        port = server.url.rpartition(":")[2]
        server.url = f"http://{own_address()}:{port}"
        with server.client("any-token") as client:
            body = {"query_source": INSERT, "params": {"sku": "open"}, "actor_id": "ann"}
            headers = {"X-Actor-Id": "ann"}
            done = client.post("/change", body, headers=headers)
            assert (done.status_code, done.json()["actor_id"]) == (200, None)
    guarded = server_process(stock.uri, *everywhere, env=tokens(ann="t"), cwd=tmp_path)
    with guarded as server, server.client() as client:
        assert client.get("/branches").status_code == 401


def own_address() -> str:
    """An address of this machine that others would use; the loopback if it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
