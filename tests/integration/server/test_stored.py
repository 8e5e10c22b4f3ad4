"""Stored queries: listed with their parameters, run by name, followed when files change."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.server import stored_queries
from omnigraph_core.server.stored_queries import StoredQueries
from tests.support.cases import each
from tests.support.served import document, new_stock, stock_server
from tests.support.server import run_server, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

READS = """
query part_by_sku($sku: String, $least: I64?)
  @description("One part.")
  @instruction("Ask for the sku first.")
{
  match { $p: Part { sku: $sku } }
  return { $p.sku, $p.stock }
}
query kinds($a: [I32], $b: Vector(4), $c: DateTime?, $d: U64, $e: Bool, $f: F32, $g: Date) {
  match { $p: Part }
  return { $p.sku }
}
"""
CHANGES = """
query add_part($sku: String) {
  insert Part { sku: $sku, name: "stored" }
}
"""
POLICY = """
version: 1
groups: { clerks: [ada], guests: [ben], readers: [kim] }
rules:
  - id: all
    allow: { actors: { group: clerks }, actions: [read, change, invoke_query], branch_scope: any }
  - id: look
    allow: { actors: { group: guests }, actions: [read], branch_scope: any }
  - id: ask
    allow: { actors: { group: readers }, actions: [read, invoke_query], branch_scope: any }
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stored")
    (root / "queries" / "deep").mkdir(parents=True)
    (root / "queries" / "reads.gq").write_text(READS)
    (root / "queries" / "deep" / "changes.gq").write_text(CHANGES)
    (root / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: ./stock } }\nserver: { graph: stock }\n"
        "query: { roots: [./queries] }\n"
    )
    return root


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root, config=root / "omnigraph.yaml") as client:
        yield client


def test_queries_are_listed(client: Client) -> None:
    listed = {query["name"]: query for query in document(client.get("/queries"))["queries"]}
    assert list(listed) == ["add_part", "kinds", "part_by_sku"]
    assert listed["part_by_sku"] == {
        "name": "part_by_sku",
        "tool_name": "part_by_sku",
        "description": "One part.",
        "instruction": "Ask for the sku first.",
        "mutation": False,
        "params": [
            {"name": "sku", "kind": "string", "nullable": False},
            {"name": "least", "kind": "bigint", "nullable": True},
        ],
    }
    assert listed["kinds"]["params"] == [
        {"name": "a", "kind": "list", "item_kind": "int", "nullable": False},
        {"name": "b", "kind": "vector", "vector_dim": 4, "nullable": False},
        {"name": "c", "kind": "datetime", "nullable": True},
        {"name": "d", "kind": "bigint", "nullable": False},
        {"name": "e", "kind": "bool", "nullable": False},
        {"name": "f", "kind": "float", "nullable": False},
        {"name": "g", "kind": "date", "nullable": False},
    ]
    assert listed["add_part"]["mutation"] is True


def test_a_read_answers_as_any_other(client: Client) -> None:
    body = {"params": {"sku": "p2"}}
    found = document(client.post("/queries/part_by_sku", body))
    plain = {"query": READS, "name": "part_by_sku", **body}
    assert found == document(client.post("/query", plain))
    assert found["rows"] == [{"p.sku": "p2", "p.stock": 7}]
    lines = client.post(
        "/queries/part_by_sku", body, headers={"Accept": "application/x-ndjson"}
    ).text.splitlines()
    assert len(lines) == 2


def test_a_mutation_answers_as_any_other(client: Client, stock: Omnigraph) -> None:
    headers = {"Idempotency-Key": "stored-1"}
    body = {"params": {"sku": "s1"}, "expect_mutation": True}
    found = document(client.post("/queries/add_part", body, headers=headers))
    assert (found["affected_nodes"], found["query_name"], found["repeated"]) == (
        1, "add_part", False,
    )  # fmt: skip
    again = document(client.post("/queries/add_part", body, headers=headers))
    assert (again["repeated"], again["commit"]) == (True, found["commit"])


def test_a_demanded_head_must_be_there(client: Client, stock: Omnigraph) -> None:
    head = stock.head_commit_id_for_branch()
    path = "/queries/add_part/if-graph-commit"
    body = {"params": {"sku": "s2"}}
    header = {"Omnigraph-If-Graph-Commit": head}
    assert document(client.post(path, body, headers=header))["affected_nodes"] == 1
    refused = document(client.post(path, {"params": {"sku": "s3"}}, headers=header), 412)
    assert refused["details"]["expected"] == head
    assert document(client.post(path, body), 422)["error"]
    reading = client.post("/queries/part_by_sku/if-graph-commit", headers=header)
    assert "only reads" in document(reading, 400)["error"]


@each(
    ("name", "body", "status"),
    [
        ("nothing", None, 404),
        ("part_by_sku", None, 400),
        ("part_by_sku", {"params": {"sku": 1}}, 400),
        ("part_by_sku", {"params": {"sku": "p1"}, "expect_mutation": True}, 400),
        ("add_part", {"params": {"sku": "x"}, "expect_mutation": False}, 400),
        ("add_part", {"params": {"sku": "x"}, "snapshot": "y"}, 400),
        ("part_by_sku", {"params": {"sku": "p1"}, "branch": "nowhere"}, 404),
        ("part_by_sku", {"params": []}, 422),
    ],
)
def test_what_cannot_be_run_is_refused(
    client: Client, name: str, body: object, status: int
) -> None:
    assert document(client.post(f"/queries/{name}", body), status)["error"]


def test_those_who_may_not_run_queries_see_none(root: Path, stock: Omnigraph) -> None:
    (root / "policy.yaml").write_text(POLICY)
    judged = root / "judged.yaml"
    judged.write_text((root / "omnigraph.yaml").read_text() + "policy: { file: ./policy.yaml }\n")
    env = tokens(ada="a-1", ben="b-1", kim="k-1")
    body = {"params": {"sku": "p1"}}
    add: Any = {"params": {"sku": "policy1"}}
    with stock_server(root, config=judged, env=env) as client:
        with client.acting("b-1") as ben:
            denied = document(ben.post("/queries/part_by_sku", body), 404)
            unknown = document(ben.post("/queries/nothing", body), 404)
            assert denied["error"].replace("part_by_sku", "nothing") == unknown["error"]
            assert document(ben.get("/queries"))["queries"] == []
        with client.acting("k-1") as kim:
            assert document(kim.post("/queries/part_by_sku", body))["row_count"] == 1
            assert document(kim.post("/queries/add_part", add), 403)["code"] == "forbidden"
        with client.acting("a-1") as ada:
            assert document(ada.post("/queries/add_part", add))["actor_id"] == "ada"


def test_keys_belong_to_an_actor(root: Path, stock: Omnigraph) -> None:
    headers = {"Idempotency-Key": "own"}
    env = tokens(ada="a-1", ben="b-1")
    with (
        stock_server(root, config=root / "omnigraph.yaml", env=env) as client,
        client.acting("a-1") as ada,
        client.acting("b-1") as ben,
    ):
        made = [
            document(who.post("/queries/add_part", {"params": {"sku": sku}}, headers=headers))
            for who, sku in ((ada, "own1"), (ben, "own2"), (ada, "own1"))
        ]
    assert [(one["actor_id"], one["repeated"]) for one in made] == [
        ("ada", False),
        ("ben", False),
        ("ada", True),
    ]


def test_changed_files_are_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_queries, "_SECONDS", 0.0)
    file = tmp_path / "one.gq"
    file.write_text(CHANGES)
    stored = StoredQueries([tmp_path])
    assert [query.name for query in stored.all()] == ["add_part"]
    (tmp_path / "two.gq").write_text(READS)
    assert stored.get("kinds") is not None
    file.write_text("query broken(")
    assert stored.get("add_part") is not None
    assert "stay as they were" in caplog.text
    file.unlink()
    assert stored.get("add_part") is None
    assert stored.get("kinds") is not None


def test_wrong_files_stop_the_start(root: Path, stock: Omnigraph, tmp_path: Path) -> None:
    for name in ("a.gq", "b.gq"):
        (tmp_path / name).write_text(CHANGES)
    (tmp_path / "c.gq").write_text("query broken(")
    (tmp_path / "d.gq").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError) as refused:
        StoredQueries([tmp_path])
    for part in ("add_part", "a.gq", "b.gq", "c.gq", "d.gq is not UTF-8"):
        assert part in refused.value.message
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"graphs: {{ stock: {{ uri: {root}/stock }} }}\nquery: {{ roots: [.] }}\n")
    ended = run_server("--config", config, "--bind", "127.0.0.1:0")
    assert ended.returncode == 1
    assert "`add_part` is in" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_snapshot_is_judged_by_its_branch(root: Path, stock: Omnigraph) -> None:
    policy = """
version: 1
groups: { readers: [kim] }
protected_branches: [main]
rules:
  - id: look
    allow: { actors: { group: readers }, actions: [read], branch_scope: any }
  - id: ask
    allow: { actors: { group: readers }, actions: [invoke_query], branch_scope: protected }
"""
    (root / "of_main.yaml").write_text(policy)
    config = root / "scoped.yaml"
    config.write_text((root / "omnigraph.yaml").read_text() + "policy: { file: of_main.yaml }\n")
    stock.branch_create("aside")
    stock.load(b'{"type": "Bin", "data": {"code": "b9"}}', branch="aside")
    heads = [stock.head_commit_id_for_branch(name) for name in ("main", "aside")]
    with stock_server(root, token="k-1", config=config, env=tokens(kim="k-1")) as client:

        def status(**place: str) -> int:
            body = {"params": {"sku": "p1"}, **place}
            return client.post("/queries/part_by_sku", body).status_code

        assert (status(snapshot=heads[0]), status(branch="main")) == (200, 200)
        assert (status(snapshot=heads[1]), status(branch="aside")) == (404, 404)
        assert (status(snapshot="none"), status(snapshot=heads[0], branch="main")) == (404, 404)


def test_graphs_below_a_root_are_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "one.gq").write_text(CHANGES)
    (tmp_path / "queries" / "dir.gq").mkdir()
    graph = new_stock(tmp_path)
    (Path(graph.uri) / "nodes" / "broken.gq").write_text("query broken(")
    monkeypatch.setattr(stored_queries, "_SECONDS", 0.0)
    listed = []
    scandir = os.scandir

    def scanning(path: Any) -> Any:
        listed.append(str(path))
        if str(path).endswith("queries") and len(listed) > 10:
            raise FileNotFoundError(path)  # gone since it was seen
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scanning)
    stored = StoredQueries([tmp_path])
    assert [query.name for query in stored.all()] == ["add_part"]
    assert not [path for path in listed if path.startswith(f"{graph.uri}/")]
    listed += [""] * 10
    assert stored.all() == ()


def test_looking_for_queries_holds_up_nobody(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    stamps = StoredQueries._stamps

    def slow(self: StoredQueries) -> Any:
        begun.set()
        assert go_on.wait(120)
        return stamps(self)

    monkeypatch.setattr(StoredQueries, "_stamps", slow)
    monkeypatch.setattr(stored_queries, "_SECONDS", 0.0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.get, "/queries")
        assert begun.wait(120)
        monkeypatch.setattr(stored_queries, "_SECONDS", 60.0)
        assert client.get("/healthz").status_code == 200
        assert len(document(client.get("/queries"))["queries"]) == 3
        assert not waiting.done()
        go_on.set()
        assert waiting.result().status_code == 200
