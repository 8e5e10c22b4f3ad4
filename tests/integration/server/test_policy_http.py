"""A policy over HTTP: who may do what where, as the file says now, with every decision logged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.served import new_stock, state_of, stock_server
from tests.support.server import tokens
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

TOKENS: Final = {name: f"token-of-{name}" for name in ("ada", "bob", "gus", "eve")}
POLICY: Final = """\
version: 1
groups:
  team: [ada, bob]
  admins: [ada]
  guests: [gus]
protected_branches: [main]
rules:
  - id: team-read
    allow: {actors: {group: team}, actions: [read, export], branch_scope: any}
  - id: team-write
    allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}
  - id: admins-fork
    allow: {actors: {group: admins}, actions: [branch_create], target_branch_scope: unprotected}
  - id: admins-promote
    allow:
      actors: {group: admins}
      actions: [branch_merge, schema_apply, run_publish, run_abort]
      target_branch_scope: protected
  - id: guests-read
    allow: {actors: {group: guests}, actions: [read], branch_scope: unprotected}
"""
READ: Final = "query skus() { match { $p: Part } return { $p.sku } }"
INSERT: Final = "query add($sku: String) { insert Part { sku: $sku, name: $sku } }"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("policed")
    (root / "policy.yaml").write_text(POLICY)
    (root / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: ./stock } }\nserver: { graph: stock }\n"
        "policy: { file: ./policy.yaml }\n"
    )
    return root


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    graph = new_stock(root)
    graph.branch_create("side")
    graph.load(line("s1").encode(), branch="side")
    graph.tag_create("on-main")
    graph.tag_create("on-side", "side")
    return graph


@pytest.fixture(scope="module")
def server(root: Path, stock: Omnigraph) -> Iterator[Client]:
    """Without a token."""
    env = tokens(**TOKENS)
    with stock_server(root, config=root / "omnigraph.yaml", env=env) as client:
        yield client


@pytest.fixture(scope="module")
def ada(server: Client) -> Iterator[Client]:
    with server.acting(TOKENS["ada"]) as client:
        yield client


@pytest.fixture(scope="module")
def bob(server: Client) -> Iterator[Client]:
    with server.acting(TOKENS["bob"]) as client:
        yield client


@pytest.fixture(scope="module")
def gus(server: Client) -> Iterator[Client]:
    """Reads what is not protected."""
    with server.acting(TOKENS["gus"]) as client:
        yield client


def line(sku: str) -> str:
    return f'{{"type": "Part", "data": {{"sku": "{sku}", "name": "n"}}}}\n'


def read(client: Client, **where: object) -> Any:
    return client.post("/read", {"query_source": READ, **where})


def add(client: Client, sku: str, branch: str) -> Any:
    body = {"query_source": INSERT, "params": {"sku": sku}, "branch": branch}
    return client.post("/change", body)


def denied(answer: Any) -> str:
    assert answer.status_code == 403, answer.text
    assert (answer.json()["code"], answer.json()["reason"]) == ("forbidden", "policy.denied")
    return str(answer.json()["error"])


def test_without_a_token_with_one_and_with_a_right(server: Client, ada: Client) -> None:
    assert read(server).status_code == 401
    with server.acting(TOKENS["eve"]) as eve:
        assert denied(read(eve)) == (
            "policy denied action 'read' on branch 'main' for unknown actor 'eve'"
        )
    assert read(ada).status_code == 200


def test_tokens_tell_actors_apart(ada: Client, bob: Client, stock: Omnigraph) -> None:
    for client, name in ((ada, "ada"), (bob, "bob")):
        done = add(client, f"by-{name}", "side").json()
        assert (done["actor_id"], done["commit"]["actor_id"]) == (name, name)
        assert stock.list_commits("side")[0].actor_id == name


def test_the_team_reads_everything_and_writes_what_is_not_protected(
    bob: Client, stock: Omnigraph
) -> None:
    before = state_of(stock)
    for branch in ("main", "side"):
        assert read(bob, branch=branch).status_code == 200
        assert bob.post("/export", {"branch": branch}).status_code == 200
    assert denied(add(bob, "x1", "main")) == (
        "policy denied action 'change' on branch 'main' for actor 'bob'"
    )
    for name in (" main", "main "):  # found by its trimmed name, judged by it
        denied(add(bob, "x1", name))
    assert denied(bob.post("/ingest", {"data": line("x1")})).startswith("policy denied")
    assert denied(bob.request("POST", "/load/ndjson", content=line("x1")))
    assert state_of(stock) == before
    assert add(bob, "x2", "side").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/snapshot", None),
        ("GET", "/commits", None),
        ("GET", "/indexes", None),
        ("GET", "/embeddings", None),
        ("GET", "/entity?table_key=node:Part&id=p1", None),
        ("GET", "/blob?type=Part&id=p1&property=drawing", None),
        ("GET", "/changes?start=beginning", None),
        ("POST", "/read", {"query_source": READ}),
        ("POST", "/query", {"query": READ}),
        ("POST", "/explain", {"query": READ}),
        ("POST", "/explain", {"query": READ, "profile": True}),
    ],
)
def test_reads_need_the_right_on_their_branch(
    gus: Client, method: str, path: str, body: Any
) -> None:
    def ask(branch: str) -> Any:
        if method == "GET":
            return (
                gus.get(path, params={"branch": branch})
                if "?" not in path
                else gus.get(f"{path}&branch={branch}")
            )
        return gus.post(path, {**body, "branch": branch})

    assert ask("side").status_code == 200, ask("side").text
    denied(ask("main"))


def test_what_names_no_branch_is_not_matched_by_a_scope(gus: Client, bob: Client) -> None:
    for path in ("/branches", "/runs", "/tags", "/commits", "/schema"):
        denied(gus.get(path))
        assert bob.get(path).status_code == 200


def test_a_commit_and_a_tag_are_read_by_the_rights_on_their_branch(
    gus: Client, bob: Client, stock: Omnigraph
) -> None:
    main, side = (stock.head_commit_id_for_branch(name) for name in ("main", "side"))
    for there, refused in (
        ({"snapshot": side}, {"snapshot": main}),
        ({"tag": "on-side"}, {"tag": "on-main"}),
        ({"branch": "side", "version": 1}, {"branch": "main", "version": 1}),
    ):
        assert read(gus, **there).status_code in (200, 404), there
        assert "on branch 'main'" in denied(read(gus, **refused))
        assert read(bob, **refused).status_code in (200, 404)
        if "version" not in there:
            assert read(gus, **there).json()["row_count"] > 4
            assert gus.get("/snapshot", params=there).status_code == 200
            denied(gus.get("/snapshot", params=refused))


def test_a_diff_needs_both_sides(gus: Client, bob: Client) -> None:
    body = {"from": "main", "to": "side"}
    denied(gus.post("/branches/diff", body))
    denied(gus.post("/branches/diff", {"from": "side", "to": "main"}))
    assert gus.post("/branches/diff", {"from": "side", "to": "side"}).status_code == 200
    assert bob.post("/branches/diff", body).status_code == 200


@pytest.mark.parametrize("way", ["/ingest", "/load", "/load/ndjson", "job"])
def test_loads_fork_what_is_missing_only_if_they_may(
    ada: Client, bob: Client, stock: Omnigraph, way: str
) -> None:
    new = f"new-{way.strip('/').replace('/', '-')}"

    def load(client: Client, branch: str) -> Any:
        if way in ("/ingest", "/load"):
            return client.post(way, {"data": line("i1"), "branch": branch, "from": "main"})
        headers = {"Prefer": "respond-async"} if way == "job" else {}
        path = f"/load/ndjson?branch={branch}&from=main"
        return client.request("POST", path, content=line("i1"), headers=headers)

    done = 202 if way == "job" else 200
    assert load(bob, "side").status_code == done  # it is there: nothing is forked
    assert denied(load(bob, new)) == (
        f"policy denied action 'branch_create' on branch 'main' targeting branch '{new}' "
        "for actor 'bob'"
    )
    assert new not in stock.branch_list()
    assert load(ada, new).status_code == done
    assert new in stock.branch_list()


def test_the_schema_of_protected_branches_only(ada: Client, bob: Client, stock: Omnigraph) -> None:
    schema = stock.schema_show().source + "node Shelf {\n  code: String @key\n}\n"
    body = {"schema_source": schema, "dry_run": True}
    assert ada.post("/schema/apply", body).status_code == 200
    assert denied(ada.post("/schema/apply", {**body, "branch": "side"})) == (
        "policy denied action 'schema_apply' targeting branch 'side' for actor 'ada'"
    )
    denied(bob.post("/schema/apply", body))
    assert bob.post("/schema/plan", body).status_code == 200


def test_admins_alone_merge_into_main(ada: Client, bob: Client, stock: Omnigraph) -> None:
    body = {"source": "side", "target": "main"}
    head = stock.head_commit_id_for_branch()
    assert denied(bob.post("/branches/merge", body)) == (
        "policy denied action 'branch_merge' on branch 'side' targeting branch 'main' "
        "for actor 'bob'"
    )
    denied(bob.post("/branches/merge", {**body, "dry_run": True}))
    denied(bob.post("/branches/merge", body, headers={"Prefer": "respond-async"}))
    denied(ada.post("/branches/merge", {"source": "main", "target": "side"}))
    denied(ada.post("/branches/merge", {**body, "delete_branch": True}))
    assert stock.head_commit_id_for_branch() == head
    assert ada.post("/branches/merge", body).json()["actor_id"] == "ada"
    assert stock.head_commit_id_for_branch() != head


def test_a_run_is_found_before_it_is_judged(ada: Client, bob: Client, stock: Omnigraph) -> None:
    run = stock.begin_run("main", actor="bob")
    for verb in ("publish", "abort"):
        assert bob.post(f"/runs/none/{verb}").status_code == 404
        assert f"'run_{verb}'" in denied(bob.post(f"/runs/{run.run_id}/{verb}"))
    assert ada.post(f"/runs/{run.run_id}/abort").json()["status"] == "aborted"


def test_decisions_are_logged(
    bob: Client, server: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "omnigraph.policy"):
        add(bob, "d1", "side")
        add(bob, "d1", "main")
        bob.post("/branches/merge", {"source": "side"})
        with server.acting(TOKENS["eve"]) as eve:
            eve.get("/branches")
    names = ("actor_id", "action", "branch", "target_branch", "allowed", "matched_rule_id")
    found = [
        tuple(getattr(record, name) for name in names)
        for record in caplog.records
        if record.name == "omnigraph.policy"
    ]
    assert found == [
        ("bob", "change", "side", "", True, "team-write"),
        ("bob", "change", "main", "", False, ""),
        ("bob", "branch_merge", "side", "main", False, ""),
        ("eve", "read", "", "", False, ""),
    ]
    assert caplog.records[0].getMessage() == "policy allowed action 'change' for actor 'bob'"


def test_the_file_is_in_force_as_it_is_now(
    bob: Client, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a restart; a file that is wrong changes nothing."""
    file = root / "policy.yaml"
    widened = POLICY.replace("[change], branch_scope: unprotected", "[change], branch_scope: any")
    denied(add(bob, "r1", "main"))
    try:
        file.write_text(widened)
        wait_until(lambda: add(bob, "r1", "main").status_code == 200, "the wider policy")
        with caplog.at_level(logging.ERROR, "omnigraph.policy"):
            file.write_text(widened.replace("[change]", "[fly]"))
            wait_until(
                lambda: bob.get("/branches") and "stays in force" in caplog.text,
                "the server to refuse the file",
            )
        assert add(bob, "r2", "main").status_code == 200
    finally:
        file.write_text(POLICY)
    wait_until(lambda: add(bob, "r3", "main").status_code == 403, "the first policy")
