"""Where a server listens, and which graphs it is told to serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph_core.config.model import Config, GraphConfig, PolicyConfig, ServerConfig
from omnigraph_core.errors import ConfigError, GraphNotFound
from omnigraph_core.server.graphs import find_graphs
from omnigraph_core.server.options import ServerOptions, parse_bind
from tests.support.cases import each

STOCK, PARTS = GraphConfig("/graphs/stock"), GraphConfig("/graphs/parts")
FAR = GraphConfig("https://example.org/graphs/stock")


@each(
    ("text", "host", "port", "is_loopback"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("localhost:0", "localhost", 0, True),
        ("[::1]:80", "::1", 80, True),
        ("0.0.0.0:8080", "0.0.0.0", 8080, False),
        ("[::]:8080", "::", 8080, False),
        ("graphs.example.org:443", "graphs.example.org", 443, False),
    ],
)
def test_an_address(text: str, host: str, port: int, is_loopback: bool) -> None:
    address = parse_bind(text)
    assert (address.host, address.port, address.is_loopback) == (host, port, is_loopback)
    assert str(address) == text


@each("text", ["", "8080", ":8080", "host:", "host:x", "host:70000", "::1:80"])
def test_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot listen on"):
        parse_bind(text)


def default_of(options: ServerOptions, **config: object) -> str:
    return find_graphs(options, Config(**config)).default_id  # type: ignore[arg-type]


def test_the_default_graph() -> None:
    both = {"stock": STOCK, "parts": PARTS}
    assert default_of(ServerOptions(uri="/other")) == "default"
    assert default_of(ServerOptions(uri="/graphs/parts"), graphs=both) == "parts"
    assert default_of(ServerOptions(target="parts"), graphs=both) == "parts"
    server = ServerConfig(graph="stock")
    assert default_of(ServerOptions(), graphs=both, server=server) == "stock"
    assert default_of(ServerOptions(target="parts"), graphs=both, server=server) == "parts"
    assert default_of(ServerOptions(), graphs={"parts": PARTS, "far": FAR}) == "parts"


@each(
    ("options", "problem"),
    [
        (ServerOptions(), "URI must be provided"),
        (ServerOptions(target="none"), "graph 'none' not found in omnigraph.yaml"),
        (ServerOptions(target="far"), "behind a server already"),
        (ServerOptions(uri="HTTPS://example.org"), "behind a server already"),
    ],
)
def test_no_default_graph(options: ServerOptions, problem: str) -> None:
    config = Config(graphs={"stock": STOCK, "parts": PARTS, "far": FAR})
    with pytest.raises(ConfigError, match=problem):
        find_graphs(options, config)


def test_graphs_by_id() -> None:
    config = Config(graphs={"stock": STOCK, "parts": PARTS, "far": FAR})
    graphs = find_graphs(ServerOptions(target="stock"), config)
    assert graphs.shown() == (("parts", PARTS.uri), ("stock", STOCK.uri))
    assert not graphs.has_policy
    with pytest.raises(GraphNotFound, match="graph 'far' not found on this server"):
        graphs.try_served("far", None)


def test_hidden_addresses_and_policies() -> None:
    config = Config(
        graphs={"stock": STOCK},
        server=ServerConfig(hides_uris=True),
        policy=PolicyConfig(file=Path("/policy.yaml")),
    )
    graphs = find_graphs(ServerOptions(), config)
    assert graphs.shown() == (("stock", "stock"),)
    assert graphs.has_policy


@each("spelled", ["stock", "./stock", "stock/", "{0}/stock/", "file://{0}/stock"])
def test_a_graph_has_its_policy_however_its_address_is_written(
    spelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stock = GraphConfig(f"{tmp_path}/stock", policy_file=Path("/policy.yaml"))
    options = ServerOptions(uri=spelled.format(tmp_path))
    graphs = find_graphs(options, Config(graphs={"stock": stock}))
    assert (graphs.default_id, graphs.shown()) == ("stock", (("stock", stock.uri),))


def test_one_graph_under_two_policies_is_refused() -> None:
    strict = GraphConfig("/graphs/stock/", policy_file=Path("/policy.yaml"))
    with pytest.raises(ConfigError, match="`stock` and `strict` are the same graph"):
        find_graphs(
            ServerOptions(target="stock"), Config(graphs={"stock": STOCK, "strict": strict})
        )
    both = {"stock": STOCK, "again": GraphConfig("/graphs/../graphs/stock")}
    assert len(find_graphs(ServerOptions(target="again"), Config(graphs=both)).shown()) == 2
