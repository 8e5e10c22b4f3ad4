"""A real server process of a guarded graph with other files around it, and three who call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from omnigraph_core.settings import SERVER_SPOOL
from tests.integration.server.security.asking import SECRET, TOKENS
from tests.support.served import new_stock
from tests.support.server import server_process, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

POLICY: Final = """
version: 1
groups: {team: [ann, ben], strangers: [eve]}
protected_branches: [main]
rules:
  - id: everything
    allow: {actors: {group: team}, actions: [read, export, change, branch_create, branch_delete,
      branch_merge, schema_apply, run_publish, run_abort, admin, invoke_query, graph_list]}
"""
STORED: Final = """
query skus() { match { $p: Part } return { $p.sku } }
query add($sku: String) { insert Part { sku: $sku, name: "stored" } }
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with other files around it."""
    root = tmp_path_factory.mktemp("guarded")
    (root / "queries").mkdir()
    (root / "queries" / "stored.gq").write_text(STORED)
    (root / "policy.yaml").write_text(POLICY)
    (root / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: ./stock } }\nserver: { graph: stock }\n"
        "policy: { file: ./policy.yaml }\nquery: { roots: [./queries] }\n"
    )
    for name in ("secret.txt", "secret.jsonl", "queries/secret.gq.txt"):
        (root / name).write_text(SECRET)
    return root


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    graph = new_stock(root)
    graph.branch_create("draft")
    graph.tag_create("v1")
    return graph


@pytest.fixture(scope="module")
def guarded(root: Path, stock: Omnigraph) -> Iterator[Client]:
    """Without a token."""
    env = {**tokens(**TOKENS), SERVER_SPOOL.name: str(root / "spool")}
    config = root / "omnigraph.yaml"
    with server_process("--config", config, env=env) as server, server.client() as client:
        yield client


@pytest.fixture(scope="module")
def ben(guarded: Client) -> Iterator[Client]:
    """May do everything."""
    with guarded.acting(TOKENS["ben"]) as client:
        yield client


@pytest.fixture(scope="module")
def eve(guarded: Client) -> Iterator[Client]:
    """May do nothing."""
    with guarded.acting(TOKENS["eve"]) as client:
        yield client
