"""Texts, statuses and exit codes that scripts rely on, from real `omnigraph-server` processes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.served import new_stock
from tests.support.server import ServerProcess, run_server, server_process, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server import Client

TOKENS: Final = {"act-a": "token-a", "act-b": "token-b", "act-x": "token-x"}
POLICY: Final = """\
version: 1
groups:
  team:   [act-a, act-b]
  admins: [act-a]
protected_branches: [main]
rules:
  - id: team-read
    allow:
      actors: { group: team }
      actions: [read, export]
      branch_scope: any
  - id: admins-promote
    allow:
      actors: { group: admins }
      actions: [branch_merge, branch_delete, schema_apply]
      target_branch_scope: protected
"""
READ: Final = """
query two($sku: String, $least: I32?) {
  match { $p: Part { sku: $sku } }
  return { $p.stock as zulu, $p.sku as alpha, $p.name as mike }
}
query all() { match { $p: Part } return { $p.sku } }
"""
SET: Final = "query set($sku: String, $to: I64) { update Part set { stock: $to } where sku = $sku }"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("texts")
    (root / "empty").mkdir()
    return root


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def open_process(stock: Omnigraph) -> Iterator[Client]:
    with server_process(stock.uri) as running, running.client() as client:
        yield client


def configured(root: Path, name: str, policy: str) -> Path:
    (root / f"{name}-policy.yaml").write_text(policy)
    config = root / f"{name}.yaml"
    config.write_text(
        "graphs: { stock: { uri: ./stock } }\nserver: { graph: stock }\n"
        f"policy: {{ file: ./{name}-policy.yaml }}\n"
    )
    return config


@pytest.fixture(scope="module")
def guarded_process(root: Path, stock: Omnigraph) -> Iterator[ServerProcess]:
    config = configured(root, "guarded", POLICY)
    env = tokens(**TOKENS)
    with server_process("--config", config, "--log-format", "json", env=env) as running:
        yield running


def error(answer: Any, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return str(answer.json()["error"])


def test_what_stops_a_start(root: Path, stock: Omnigraph) -> None:
    twice = POLICY.replace("admins-promote", "team-read")
    unknown = POLICY.replace("group: admins", "group: nobody")
    scope = POLICY.replace("[read, export]", "[read, branch_merge]")
    env = tokens(**TOKENS)
    cases: list[tuple[int, str, tuple[str, ...], dict[str, str]]] = [
        (1, "duplicate policy rule id", ("--config", str(configured(root, "twice", twice))), env),
        (1, "references unknown group", ("--config", str(configured(root, "who", unknown))), env),
        (1, "unsupported action", ("--config", str(configured(root, "scope", scope))), env),
        (1, "policy", ("--config", str(configured(root, "version", "version: 2\n"))), env),
        (1, "token", (stock.uri,), tokens(**{"act-a": " "})),
        (64, "OMNIGRAPH_TARGET_URI", (), {}),
    ]

    def run(case: tuple[int, str, tuple[str, ...], dict[str, str]]) -> str:
        status, text, arguments, given = case
        done = run_server(*arguments, env=given, cwd=root / "empty")
        told = " ".join(done.stderr.split())
        is_right = done.returncode == status and text in told and "Traceback" not in told
        return "" if is_right else f"{arguments}: {done.returncode} {told}"

    with ThreadPoolExecutor(2) as pool:
        assert [told for told in pool.map(run, cases) if told] == []


def test_columns_and_keys_of_rows_keep_their_order(open_process: Client) -> None:
    body = {"query_source": READ, "query_name": "two", "params": {"sku": "p1"}}
    answer = open_process.post("/read", body)
    assert answer.json()["columns"] == ["zulu", "alpha", "mike"]
    assert '"rows":[{"zulu":4,"alpha":"p1","mike":"part p1"}]' in answer.text
    keys = ["query_name", "target", "row_count", "columns", "rows"]
    assert [key for key in answer.json() if key in keys] == keys


@pytest.mark.parametrize(
    ("params", "start"),
    [
        ({"sku": 7}, "param 'sku': "),
        ({"sku": "p1", "least": 2**40}, "param 'least': "),
        ({"sku": "p1", "least": "many"}, "param 'least': "),
        ({"sku": None}, "param 'sku': "),
    ],
)
def test_parameters(open_process: Client, params: object, start: str) -> None:
    body = {"query_source": READ, "query_name": "two", "params": params}
    assert error(open_process.post("/read", body), 400, "bad_request").startswith(start)


def test_refusals_of_reads(open_process: Client) -> None:
    both = {"query_source": READ, "branch": "main", "snapshot": "x"}
    assert "exclude each other" in error(open_process.post("/read", both), 400, "bad_request")
    for name in (None, "three"):
        body = {"query_source": READ, "query_name": name}
        assert "two" in open_process.post("/read", body).text
        error(open_process.post("/read", body), 400, "bad_request")
    error(open_process.get("/commits/01HZY000000000000000000000"), 404, "not_found")
    error(open_process.get("/runs/none"), 404, "not_found")
    error(open_process.delete("/branches/none"), 404, "not_found")
    error(open_process.delete("/branches/main"), 400, "bad_request")
    error(open_process.post("/branches", {"name": "main"}), 400, "bad_request")


@pytest.mark.parametrize(("path", "most"), [("/read", 1_048_576), ("/ingest", 33_554_432)])
def test_bodies_that_are_too_long(open_process: Client, path: str, most: int) -> None:
    answer = open_process.request("POST", path, content=b" " * (most + 1))
    assert f"{most:,}" in error(answer, 413, "bad_request")


def test_conflicts(open_process: Client) -> None:
    """Three are in the message, all of them beside it."""
    skus = ("p1", "p2", "p3", "p4")
    open_process.post("/branches", {"name": "other"})
    for branch, value in (("other", 1), ("main", 2)):
        for sku in skus:
            body = {
                "query_source": SET, "branch": branch, "params": {"sku": sku, "to": value},
            }  # fmt: skip
            assert open_process.post("/change", body).status_code == 200
    answer = open_process.post("/branches/merge", {"source": "other"})
    assert error(answer, 409, "conflict") == (
        "merge conflicts: node:Part:p1 (divergent_update); node:Part:p2 (divergent_update); "
        "node:Part:p3 (divergent_update); and 1 more"
    )
    found = answer.json()["merge_conflicts"]
    assert [(item["table_key"], item["row_id"], item["kind"]) for item in found] == [
        ("node:Part", sku, "divergent_update") for sku in skus
    ]
    assert all(item["message"] for item in found)


def test_a_key_that_the_server_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who asks can help it: it is a fault of the server, and nothing is written."""
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OMNIGRAPH_EMBEDDINGS_MOCK"):
        monkeypatch.delenv(name, raising=False)
    graph = Omnigraph.init(
        str(tmp_path / "docs"),
        'node Doc { slug: String @key  title: String  sense: Vector(4)? @embed("title") }',
    )
    graph.load(b'{"type": "Doc", "data": {"slug": "a", "title": "t", "sense": [1, 0, 0, 0]}}')
    near = """query near($text: String) {
      match { $d: Doc } return { $d.slug } order { nearest($d.sense, $text) } limit 1
    }"""
    line = '{"type": "Doc", "data": {"slug": "b", "title": "u"}}'
    head = graph.head_commit_id_for_branch()
    with server_process(graph.uri) as running, running.client() as client:
        asked = client.post("/read", {"query_source": near, "params": {"text": "bolt"}})
        for answer in (asked, client.post("/ingest", {"data": line})):
            assert "GEMINI_API_KEY" in error(answer, 500, "internal")
    assert graph.head_commit_id_for_branch() == head


def test_an_open_server_asks_for_no_token(open_process: Client) -> None:
    document = open_process.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert "securitySchemes" not in document["components"]
    assert '"security"' not in open_process.get("/openapi.json").text
    health = open_process.get("/healthz").json()
    assert health["status"] == "ok"
    assert health["version"].startswith("0.3.")


def test_tokens_and_rights(guarded_process: ServerProcess) -> None:
    with guarded_process.client() as nobody:
        assert error(nobody.get("/schema"), 401, "unauthorized") == "missing bearer token"
        assert nobody.get("/healthz").status_code == 200
        assert '"bearer_token"' in nobody.get("/openapi.json").text
        assert nobody.get("/nowhere").status_code == 404
    with guarded_process.client("token-c") as other:
        assert error(other.get("/schema"), 401, "unauthorized") == "invalid bearer token"
    change = {"query_source": SET, "params": {"sku": "p1", "to": 1}}
    with guarded_process.client("token-b") as b:
        assert b.post("/read", {"query_source": READ, "query_name": "all"}).status_code == 200
        assert error(b.post("/change", change), 403, "forbidden") == (
            "policy denied action 'change' on branch 'main' for actor 'act-b'"
        )
        merge = b.post("/branches/merge", {"source": "other", "target": "main"})
        assert error(merge, 403, "forbidden") == (
            "policy denied action 'branch_merge' on branch 'other' targeting branch 'main' "
            "for actor 'act-b'"
        )
        assert error(b.get("/graphs"), 403, "forbidden") == (
            "policy denied action 'graph_list' for actor 'act-b'"
        )
    with guarded_process.client("token-x") as x:
        assert error(x.get("/branches"), 403, "forbidden") == (
            "policy denied action 'read' for unknown actor 'act-x'"
        )
    assert guarded_process.stop() == 0
    records = [json.loads(text) for text in guarded_process.log]
    decided = [item for item in records if item["logger"] == "omnigraph.policy"]
    assert {item["level"] for item in decided} == {"info"}
    assert decided[0]["message"] == "policy allowed action 'read' for actor 'act-b'"
    names = ("actor_id", "action", "branch", "target_branch", "allowed", "matched_rule_id")
    assert [[item[name] for name in names] for item in decided] == [
        ["act-b", "read", "main", "", True, "team-read"],
        ["act-b", "change", "main", "", False, ""],
        ["act-b", "branch_merge", "other", "main", False, ""],
        ["act-b", "graph_list", "", "", False, ""],
        ["act-x", "read", "", "", False, ""],
    ]
