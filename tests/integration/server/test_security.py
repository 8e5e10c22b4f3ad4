"""What an attacker would try: to be somebody else, to get out of the graph, to learn what is there.

Tokens stay out of everything a server writes; who may not read learns nothing from refusals.
"""

from __future__ import annotations

import hmac
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.server import auth
from tests.support.raw_http import exchange, request
from tests.support.served import new_stock, state_of, stock_server
from tests.support.server import server_process, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

TOKENS: Final = {"ann": "token-of-ann", "ben": "token-of-ben", "eve": "token-of-eve"}
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
READ: Final = "query skus() { match { $p: Part } return { $p.sku } }"
INSERT: Final = "query add($sku: String) { insert Part { sku: $sku, name: $sku } }"
SECRET: Final = "the-secret-beside-the-graph"


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
    config = root / "omnigraph.yaml"
    with stock_server(root, config=config, env=tokens(**TOKENS)) as client:
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


# To be somebody else

SPOOF: Final = {"actor": "ann", "actor_id": "ann", "as": "ann", "author": "ann"}
SPOOFED: Final = {
    "X-Actor-Id": "ann", "X-Actor": "ann", "X-Omnigraph-Actor": "ann", "Omnigraph-Actor": "ann",
    "X-Forwarded-User": "ann", "X-Remote-User": "ann", "From": "ann", "Cookie": "actor=ann",
}  # fmt: skip


def test_every_write_is_recorded_for_the_owner_of_the_token(ben: Client, stock: Omnigraph) -> None:
    line = '{"type": "Part", "data": {"sku": "%s", "name": "n"}}'
    head = stock.head_commit_id_for_branch()
    schema = stock.schema_show().source + "node Shelf {\n  code: String @key\n}\n"
    writes: list[tuple[str, dict[str, Any]]] = [
        ("/branches", {"name": "mine"}),
        ("/change", {"query_source": INSERT, "params": {"sku": "w1"}, "branch": "mine"}),
        ("/mutate", {"query": INSERT, "params": {"sku": "w2"}, "branch": "mine"}),
        ("/ingest", {"data": line % "w3", "branch": "mine"}),
        ("/load", {"data": line % "w4", "branch": "mine"}),
        ("/queries/add", {"params": {"sku": "w5"}, "branch": "mine"}),
        ("/branches/merge", {"source": "mine", "target": "draft"}),
        ("/runs", {"target_branch": "draft"}),
        ("/tags", {"name": "mine"}),
        (f"/commits/{head}/pick", {"into": "draft"}),
        ("/schema/apply", {"schema_source": schema, "branch": "mine"}),
    ]
    known = {commit.graph_commit_id for commit in stock.list_commits("draft")}
    for path, body in writes:
        answer = ben.post(f"{path}?actor=ann&actor_id=ann", {**body, **SPOOF}, headers=SPOOFED)
        assert answer.status_code == 200, answer.text
        assert "ann" not in re.findall(r'"actor(?:_id)?":"(\w+)"', answer.text), path
    raw = ben.request(
        "POST", "/load/ndjson?branch=mine&actor=ann", content=line % "w6", headers=SPOOFED
    )
    assert raw.json()["actor_id"] == "ben"
    job = ben.post(
        "/branches/merge", {"source": "mine", "target": "draft", **SPOOF},
        headers={"Prefer": "respond-async", **SPOOFED},
    ).json()  # fmt: skip
    assert job["actor_id"] == "ben"
    made = [
        commit
        for name in ("mine", "draft")
        for commit in stock.list_commits(name)
        if commit.graph_commit_id not in known
    ]
    assert len(made) >= 8
    assert {commit.actor_id for commit in made} == {"ben"}
    assert {run.actor_id for run in stock.list_runs()} == {"ben"}
    assert next(tag for tag in stock.tag_list() if tag.tag == "mine").actor == "ben"


def test_two_tokens_make_no_actor(guarded: Client) -> None:
    """The first one counts, as for everybody on the way."""
    both = b"Authorization: Bearer wrong\r\nAuthorization: Bearer token-of-ann\r\n"
    data = b"GET /branches HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + both + b"\r\n"
    (answer,) = exchange(guarded.url, data)
    assert answer.status == 401


# Tokens

BAD: Final = (
    "Bearer wrong", "Bearer token-of-an", "Bearer token-of-ann2", "Bearer  token-of-ann",
    "Bearer token-of-ann\t x", "Bearer TOKEN-OF-ANN", "Bearer " + "a" * 60_000, "Bearer \xff\xfe",
    "Bearer token-of-ann, Bearer token-of-ben", "Bearer ", "Bearer token-of-ann\xa0",
)  # fmt: skip
NONE: Final = ("", "Bearer", "bearer token-of-ann", "BEARER token-of-ann", "Basic dG9rZW4=",
               "Token token-of-ann", "Bearertoken-of-ann", "token-of-ann")  # fmt: skip


def test_every_wrong_token_gets_the_same_answer_by_the_same_way(
    guarded: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared with all that there are: no answer comes sooner than another."""
    compared: list[bytes] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append(right)
        return hmac.compare_digest(left, right)

    monkeypatch.setattr(auth, "hmac", type("counting", (), {"compare_digest": compare}))
    for given, message in (*((text, "invalid") for text in BAD), *((t, "missing") for t in NONE)):
        compared.clear()
        (answer,) = exchange(guarded.url, request("GET", "/schema", Authorization=given))
        body = answer.json()
        assert answer.status == 401, given[:40]
        assert body == {
            "error": f"{message} bearer token",
            "code": "unauthorized",
            "reason": body["reason"],
            "request_id": answer.headers["x-request-id"],
        }
        # What HTTP itself trims is gone before anybody sees it: `Bearer ` is no bearer then.
        assert len(compared) == (3 if message == "invalid" else 0), given[:40]
    compared.clear()
    for token in TOKENS.values():
        (answer,) = exchange(guarded.url, request("GET", "/x", Authorization=f"Bearer {token}"))
    assert len(compared) == 9  # a good token, too


def described(server: Client) -> Iterator[tuple[str, str, Any]]:
    for path, operations in server.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            yield method, re.sub(r"\{\w+\}", "x", path), operation


def test_no_operation_does_anything_without_a_token(guarded: Client, stock: Omnigraph) -> None:
    before = state_of(stock)
    for method, path, operation in described(guarded):
        for prefix in ("", "/graphs/none"):
            if "security" not in operation:
                assert path in ("/healthz", "/readyz")
                continue
            answer = guarded.request(method.upper(), prefix + path, content=b"{")
            assert answer.status_code == 401, (method, path)
            if method != "head":
                assert answer.json()["error"] == "missing bearer token"
    assert state_of(stock) == before
    (answer,) = exchange(guarded.url, request("GET", "/none"))
    assert answer.status == 404


def test_tokens_are_nowhere(root: Path, stock: Omnigraph, tmp_path: Path) -> None:
    """Through requests that fail in all ways, with everything logged."""
    token = "s3cr3t-0f-ann"
    wrong = "wr0ng-s3cr3t"
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"ann": token, "ben": "0ther-s3cr3t"}))
    env = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file),
        "OMNIGRAPH_SERVER_BEARER_TOKEN": "s1ngle-s3cr3t",
        "OMNIGRAPH_SERVER_SPOOL": str(tmp_path / "spool"),
        "OMNIGRAPH_LOG": "debug",
    }
    answers = []
    with server_process("--config", root / "omnigraph.yaml", env=env) as server:
        for given in (token, wrong):
            with server.client(given) as client:
                for method, path, _ in described(client):
                    address = f"{path}?token={given}&access_token={given}"
                    body = b"{" if given == wrong else b""
                    answers.append(client.request(method.upper(), address, content=body))
                file = {"file": ("Part.csv", b"sku\n1\n")}
                answers.append(client.request("POST", "/load/files", files=file))
                answers.append(client.get("/metrics"))
                answers.append(client.get("/openapi.json"))
                key = {"Idempotency-Key": "k", "X-Request-Id": "r"}
                answers.append(client.post("/branches", {"name": f"by-{given[:5]}"}, headers=key))
                answers.append(client.post("/verify", headers={"Prefer": "respond-async"}))
        exchange(
            server.url, b"GET / HTTP/1.1\r\nAuthorization: Bearer " + token.encode() + b"\0\r\n"
        )
        assert server.stop() == 0
    told = ["".join(server.log)]
    told += [f"{answer.headers!r} {answer.text}" for answer in answers]
    told += [path.read_text() for path in (tmp_path / "spool").rglob("*") if path.is_file()]
    assert len(told) > 100
    assert not [text for text in told if "s3cr3t" in text]
    assert told[0].count("omnigraph.access") > 100


def test_tokens_are_in_no_repr() -> None:
    known = auth.Tokens([("ann", "s3cr3t-0f-ann")])
    assert "s3cr3t" not in f"{known!r} {known} {[known]} {known.__reduce_ex__(2)}"
    assert "s3cr3t" not in repr([getattr(known, name) for name in auth.Tokens.__slots__])


# To get out of the graph

ASIDE: Final = (
    "../secret.txt", "/etc/passwd", "file:///etc/passwd", "..\\secret.txt",
    "stock/../../secret.txt",
)  # fmt: skip


def tree(root: Path) -> dict[str, int]:
    """Every file beside the graph and the spool, with its length."""
    own = ("stock", "spool")
    return {
        str(path.relative_to(root)): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in own
    }


def asking(name: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Whatever takes a name of something, with this name."""
    line = f'{{"type": "Part", "data": {{"sku": "{0}", "drawing": "x"}}}}'
    return [
        ("POST", "/read", {"json": {"query_source": READ, "branch": name}}),
        ("POST", "/read", {"json": {"query_source": READ, "snapshot": name}}),
        ("POST", "/read", {"json": {"query_source": READ, "tag": name}}),
        ("POST", "/export", {"json": {"table_keys": [name]}}),
        ("POST", "/export", {"json": {"type_names": [name]}}),
        ("POST", "/branches", {"json": {"name": name}}),
        ("POST", "/branches", {"json": {"name": "new", "from": name}}),
        ("POST", "/branches/merge", {"json": {"source": name}}),
        ("POST", "/branches/diff", {"json": {"from": name, "to": "main"}}),
        ("POST", "/branches/reset", {"json": {"branch": name, "to": name, "confirm": True}}),
        ("POST", "/tags", {"json": {"name": name}}),
        ("POST", "/runs", {"json": {"target_branch": name}}),
        ("POST", "/ingest", {"json": {"data": line, "branch": name}}),
        ("POST", "/load", {"json": {"data": name}}),
        ("POST", "/load", {"json": {"data": "", "type": name, "format": "csv"}}),
        ("GET", "/entity", {"params": {"table_key": name, "id": name}}),
        ("GET", "/blob", {"params": {"type": "Part", "id": name, "property": name}}),
        ("GET", "/blob", {"params": {"type": name, "id": "p1", "property": "drawing"}}),
        ("GET", "/snapshot", {"params": {"branch": name}}),
        ("GET", "/changes", {"params": {"branch": name, "cursor": name}}),
        ("GET", f"/branches/{name}", {}),
        ("DELETE", f"/branches/{name}", {}),
        ("DELETE", f"/tags/{name}", {}),
        ("GET", f"/commits/{name}", {}),
        ("GET", f"/runs/{name}", {}),
        ("GET", f"/jobs/{name}", {}),
        ("POST", f"/queries/{name}", {}),
        ("GET", f"/graphs/{name}/schema", {}),
        ("POST", "/verify", {"headers": {"Idempotency-Key": "/../../../stolen"}}),
        ("POST", "/load/files", {"files": {"file": (name, b"{}")}}),
        ("POST", "/load/files", {"files": {"file": (f"{name}/Part.csv", b"sku,name\n")}}),
    ]


def test_no_name_leads_out_of_the_graph(ben: Client, root: Path) -> None:
    before = tree(root)
    for name in ASIDE:
        for method, path, options in asking(name):
            answer = ben.request(method, path, **options)
            assert answer.status_code < 500, (path, options, answer.text)
            for kept in (SECRET, "root:", "protected_branches", "query: {"):
                assert kept not in answer.text, (path, options)
    assert tree(root) == before
    outside = {path.name for path in root.parent.iterdir()} - {root.name}
    assert not {name for name in outside if "stolen" in name or "secret" in name}


def test_files_of_the_server_cannot_be_loaded(ben: Client, root: Path) -> None:
    """Data is data: a name in its place is not followed."""
    for name in (str(root / "secret.jsonl"), f"@{root / 'secret.jsonl'}", "secret.jsonl"):
        for path in ("/load", "/ingest"):
            answer = ben.post(path, {"data": name})
            assert answer.status_code == 400
            assert SECRET not in answer.text


def test_blobs_elsewhere_are_not_fetched_for_anybody(ben: Client, root: Path) -> None:
    """An address in a row is told, not opened."""
    for sku, uri in (("u1", (root / "secret.txt").as_uri()), ("u2", "s3://bucket/secret")):
        data = {"type": "Part", "data": {"sku": sku, "name": "n", "drawing": uri}}
        answer = ben.post("/load", {"data": json.dumps(data), "branch": "draft"})
        assert answer.status_code == 200, answer.text
        where = {"type": "Part", "id": sku, "property": "drawing", "branch": "draft"}
        answer = ben.get("/blob", params=where)
        assert answer.status_code == 400
        assert SECRET not in answer.text


# To learn what is there


def told(answer: Any, name: str) -> object:
    """An answer without what differs from request to request, and the name that was asked for."""
    body = answer.json()
    body.pop("request_id")
    headers = sorted(set(answer.headers) - {"date"})
    text = re.sub("__run__[0-9A-Z]{26}", "a new run", json.dumps(body))
    return answer.status_code, headers, text.replace(name, "…")


def test_refusals_do_not_tell_what_there_is(eve: Client, stock: Omnigraph) -> None:
    """A commit or a tag is refused by the name of its branch; a branch that is there as any."""
    head = stock.head_commit_id_for_branch()
    pairs = [("draft", "nowhere"), ("v1", "v9"), (head, "01HZY000000000000000000000")]
    for there, missing in pairs:
        for known, unknown in zip(asking(there), asking(missing), strict=True):
            method, path, options = known
            if path.startswith(("/runs/", "/graphs/")):
                continue  # told to everybody who has a token
            answers = [eve.request(m, p, **o) for m, p, o in (known, unknown)]
            what = (method, path, options)
            assert answers[0].status_code in (400, 403, 404), what
            assert answers[0].status_code == answers[1].status_code, what
            if there == "draft":
                assert told(answers[0], there) == told(answers[1], missing), what


def test_stored_queries_are_not_there_for_those_who_may_not(eve: Client, ben: Client) -> None:
    assert ben.post("/queries/skus").status_code == 200
    for suffix, headers in (("", {}), ("/if-graph-commit", {"Omnigraph-If-Graph-Commit": "x"})):
        for body in (None, {}, {"params": {"sku": 7}}, {"branch": "nowhere"}, {"params": []}):
            known, unknown = (
                eve.post(f"/queries/{name}{suffix}", body, headers=headers)
                for name in ("skus", "nosuch")
            )
            assert known.status_code in (404, 422)
            assert told(known, "skus") == told(unknown, "nosuch")
    assert eve.get("/queries").json() == {"queries": []}


def test_figures_are_for_those_with_a_token(guarded: Client, eve: Client) -> None:
    assert guarded.get("/metrics").status_code == 401
    text = eve.get("/metrics").text
    assert "omnigraph_http_requests_total" in text
    assert not re.search("draft|stock|token-of|ann|ben", text)


def test_browsers_of_other_sites_are_told_nothing(guarded: Client, ben: Client) -> None:
    origin = {"Origin": "https://elsewhere.example.org", "Access-Control-Request-Method": "POST"}
    for answer in (
        guarded.request("OPTIONS", "/change", headers=origin),
        ben.get("/branches", headers=origin),
        guarded.get("/branches", headers=origin),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
