"""Who may call, who is recorded, and what a policy lets them do, over real connections."""

from __future__ import annotations

import http.client
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError
from omnigraph_core.server.options import ServerOptions
from omnigraph_core.server.serving import prepare
from tests.integration.server.conftest import FIXTURES
from tests.support.server import serving, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server import Client

TOKENS = {"ann": "token-of-ann", "ben": "token-of-ben", "eve": "token-of-eve"}
POLICY = """
version: 1
groups: {team: [ann, ben], admins: [ann]}
protected_branches: [main]
rules:
  - id: team-read
    allow: {actors: {group: team}, actions: [read, export], branch_scope: any}
  - id: team-change
    allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}
  - id: admins-promote
    allow:
      actors: {group: admins}
      actions: [branch_create, branch_merge, branch_delete, schema_apply, run_publish]
      target_branch_scope: any
  - id: admins-list
    allow: {actors: {group: admins}, actions: [graph_list]}
"""
NAMES = "query names() { match { $p: Person } return { $p.name } }"
INSERT = "query add($name: String) { insert Person { name: $name } }"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Two graphs under one policy, with a token for each of three actors."""
    root = tmp_path_factory.mktemp("guarded")
    schema = (FIXTURES / "schemas" / "people.pg").read_text()
    for name in ("people", "others"):
        graph = Omnigraph.init(str(root / name), schema)
        graph.load(FIXTURES / "data" / "people.jsonl")
        graph.branch_create("draft")
    (root / "policy.yaml").write_text(POLICY)
    (root / "omnigraph.yaml").write_text(
        "graphs:\n  people: {uri: people}\n  others: {uri: others}\n  gone: {uri: gone}\n"
        "  far: {uri: 'https://example.org/graphs/far'}\n"
        "server: {graph: people}\npolicy: {file: policy.yaml}\n"
    )
    with serving(config=root / "omnigraph.yaml", env=tokens(**TOKENS)) as client:
        yield client


@pytest.fixture(scope="module")
def ann(guarded: Client) -> Iterator[Client]:
    with guarded.acting(TOKENS["ann"]) as client:
        yield client


@pytest.fixture(scope="module")
def ben(guarded: Client) -> Iterator[Client]:
    with guarded.acting(TOKENS["ben"]) as client:
        yield client


def add(client: Client, name: str, branch: str, prefix: str = "", **headers: str) -> Any:
    body = {"query_source": INSERT, "params": {"name": name}, "branch": branch}
    return client.post(f"{prefix}/change", body, headers=headers)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "missing bearer token"),
        ("Basic abc", "missing bearer token"),
        ("bearer token-of-ann", "missing bearer token"),
        ("token-of-ann", "missing bearer token"),
        ("Bearer wrong", "invalid bearer token"),
        ("Bearer token-of-an", "invalid bearer token"),
    ],
)
def test_no_good_token(guarded: Client, header: str | None, message: str) -> None:
    headers = {} if header is None else {"Authorization": header}
    for method, path in (("GET", "/schema"), ("POST", "/read"), ("GET", "/metrics")):
        answer = guarded.request(method, path, headers=headers)
        body = answer.json()
        assert (answer.status_code, body["code"]) == (401, "unauthorized")
        assert body["error"] == message
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "token-of" not in answer.text


def test_what_needs_no_token(guarded: Client) -> None:
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/readyz").status_code == 200
    assert guarded.get("/openapi.json").status_code == 200
    assert guarded.get("/none").status_code == 404
    assert guarded.get("/graphs/none/none").status_code == 404


def test_below_the_name_of_a_graph_nothing_is_open_to_everybody(
    guarded: Client, ann: Client
) -> None:
    for path in ("healthz", "readyz", "openapi.json", "metrics"):
        for name in ("others", "none"):  # nobody learns which there are
            assert guarded.get(f"/graphs/{name}/{path}").status_code == 401
        assert ann.get(f"/graphs/others/{path}").status_code == 200
        unknown = ann.get(f"/graphs/none/{path}")
        assert (unknown.status_code, unknown.json()["reason"]) == (404, "not_found.graph")


def test_a_refused_caller_learns_nothing_and_sends_nothing(guarded: Client) -> None:
    """Malformed, oversized and unknown: the token comes first."""
    json_type = {"Content-Type": "application/json"}
    for path, content in (("/read", b"{"), ("/read", b"x" * 2_000_000), ("/ingest", b"{")):
        answer = guarded.request("POST", path, content=content, headers=json_type)
        assert answer.status_code == 401
    for path in ("/graphs/none/schema", "/graphs/others/schema", "/branches/none"):
        assert guarded.get(path).status_code == 401


def test_the_body_of_a_refused_caller_is_not_waited_for(guarded: Client) -> None:
    connection = http.client.HTTPConnection(guarded.url.removeprefix("http://"), timeout=120)
    connection.putrequest("POST", "/read")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "1000")
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 401
    answer.read()
    connection.close()


def test_the_actor_comes_from_the_token_alone(ann: Client, ben: Client) -> None:
    spoof = {"X-Actor-Id": "ann", "X-Omnigraph-Actor": "ann", "From": "ann"}
    first = add(ben, "Ivy", "draft", **spoof).json()
    assert (first["actor_id"], first["commit"]["actor_id"]) == ("ben", "ben")
    body = {
        "query_source": INSERT,
        "params": {"name": "Jon"},
        "branch": "draft",
        "actor": "ann",
        "actor_id": "ann",
    }
    assert ben.post("/change?actor=ann", body).json()["actor_id"] == "ben"
    assert add(ann, "Kay", "draft").json()["actor_id"] == "ann"


def denied(response: Any) -> Any:
    assert response.status_code == 403, response.text
    body = response.json()
    assert (body["code"], body["reason"]) == ("forbidden", "policy.denied")
    return body


def test_what_the_policy_denies(ann: Client, ben: Client, guarded: Client) -> None:
    assert ben.post("/read", {"query_source": NAMES}).status_code == 200
    message = denied(add(ben, "Lou", "main"))["error"]
    assert message == "policy denied action 'change' on branch 'main' for actor 'ben'"
    with guarded.acting(TOKENS["eve"]) as eve:
        message = denied(eve.get("/branches"))["error"]
        assert message == "policy denied action 'read' for unknown actor 'eve'"
        there, not_there = (denied(eve.get(f"/branches/{n}")) for n in ("draft", "none"))
        assert there["error"] == not_there["error"]
    body = {"source": "draft", "target": "main"}
    assert "targeting branch 'main'" in denied(ben.post("/branches/merge", body))["error"]
    assert ann.post("/branches/merge", {**body, "dry_run": True}).status_code == 200
    assert denied(ben.post("/branches", {"name": "mine"}))
    assert denied(ben.delete("/branches/draft"))
    assert denied(ben.post("/schema/apply", {"schema_source": "node A { k: String @key }"}))


def test_a_snapshot_is_read_by_the_rights_on_its_branch(ben: Client) -> None:
    commit_id = ben.get("/commits?branch=draft").json()["commits"][0]["graph_commit_id"]
    body = {"query_source": NAMES, "snapshot": commit_id}
    assert ben.post("/read", body).status_code == 200


def test_ingest_into_a_new_branch_needs_the_right_to_make_one(ann: Client, ben: Client) -> None:
    line = '{"type": "Person", "data": {"name": "Moe"}}'
    assert ben.post("/ingest", {"data": line, "branch": "draft"}).status_code == 200
    message = denied(ben.post("/ingest", {"data": line, "branch": "newer"}))["error"]
    assert "branch_create" in message
    assert "newer" not in ann.get("/branches").json()["branches"]
    assert ann.post("/ingest", {"data": line, "branch": "newer"}).status_code == 200


def test_an_unknown_run_is_told_before_rights(guarded: Client) -> None:
    with guarded.acting(TOKENS["eve"]) as eve:
        assert eve.post("/runs/none/publish").status_code == 404
        assert eve.post("/runs/none/abort").status_code == 404


def test_the_list_of_graphs(ann: Client, ben: Client) -> None:
    found = ann.get("/graphs").json()["graphs"]
    assert [item["graph_id"] for item in found] == ["gone", "others", "people"]
    assert denied(ben.get("/graphs"))


def test_several_graphs(ann: Client) -> None:
    assert add(ann, "Nia", "draft", "/graphs/others").status_code == 200
    body = {"query_source": NAMES, "branch": "draft"}
    others = ann.post("/graphs/others/read", body).json()["rows"]
    people = ann.post("/graphs/people/read", body).json()["rows"]
    assert {"p.name": "Nia"} in others
    assert {"p.name": "Nia"} not in people
    assert ann.post("/read", body).json()["rows"] == people
    for name in ("gone", "none", "far"):
        answer = ann.get(f"/graphs/{name}/schema")
        assert (answer.status_code, answer.json()["reason"]) == (404, "not_found.graph")


def test_a_long_job_is_denied_before_it_begins(ben: Client) -> None:
    body = {"source": "draft", "target": "main"}
    runs = ben.get("/runs").json()
    later = {"Prefer": "respond-async"}
    assert denied(ben.post("/branches/merge", body, headers=later))
    commit_id = ben.get("/commits").json()["commits"][0]["graph_commit_id"]
    for step in ("revert", "pick"):
        assert denied(ben.post(f"/commits/{commit_id}/{step}", {}, headers=later))
    on_draft = {"branch": "draft"}
    missing = ben.post("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/revert", on_draft, headers=later)
    assert missing.status_code == 404
    assert ben.get("/runs").json() == runs


def test_tokens_without_a_policy_allow_everything(people: Omnigraph, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps(TOKENS))
    env = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(path),
        "OMNIGRAPH_SERVER_BEARER_TOKEN": "single",
    }
    with serving(people.uri, token="single", env=env) as client:
        assert add(client, "Ola", "main").json()["actor_id"] == "default"
        answer = client.get("/graphs").json()
        assert answer["code"] == "forbidden"
    with serving(people.uri, token="single", env=env, lists_graphs=True) as client:
        found = client.get("/graphs").json()
        assert found == {"graphs": [{"graph_id": "default", "uri": people.uri}]}


def test_a_wrong_policy_of_any_graph_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(POLICY)
    for name in ("bad", "worse"):
        (tmp_path / f"{name}.yaml").write_text("version: 1\nrules: [{id: a}]\n")
    config = tmp_path / "omnigraph.yaml"
    config.write_text(
        "graphs:\n  people: {uri: people, policy: {file: good.yaml}}\n"
        "  others: {uri: others, policy: {file: bad.yaml}}\n"
        "  more: {uri: more, policy: {file: worse.yaml}}\nserver: {graph: people}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in tokens(**TOKENS).items():
            patch.setenv(name, value)
        with pytest.raises(ConfigError) as refused:
            prepare(ServerOptions(config=config))
    assert {"bad.yaml", "worse.yaml"} <= set(re.findall(r"\w+\.yaml", refused.value.message))
