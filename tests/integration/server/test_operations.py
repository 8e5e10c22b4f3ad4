"""The operations of 0.3 and their later names, over a real connection: exact fields and values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

NAMES = "query names() { match { $p: Person } return { $p.age, $p.name } order { $p.name } }"
OLDER = """
query older($than: I32) {
  match { $p: Person $p.age > $than }
  return { $p.name as name }
  order { $p.name }
}
"""
INSERT = "query add($name: String) { insert Person { name: $name } }"
COMMIT = {
    "graph_commit_id", "manifest_branch", "manifest_version", "parent_commit_id",
    "merged_parent_commit_id", "actor_id", "created_at",
}  # fmt: skip
RUN = {
    "run_id", "target_branch", "run_branch", "base_snapshot_id", "base_manifest_version",
    "operation_hash", "actor_id", "status", "published_snapshot_id", "created_at", "updated_at",
}  # fmt: skip


def ok(response: Any) -> Any:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def add(client: Client, name: str, branch: str = "main", **headers: str) -> Any:
    body = {"query_source": INSERT, "params": {"name": name}, "branch": branch}
    return client.post("/change", body, headers=headers)


def test_health(open_server: Client) -> None:
    found = ok(open_server.get("/healthz"))
    assert found == {"status": "ok", "version": "0.3.1", "omnigraph_version": "0.1.0"}
    assert ok(open_server.get("/readyz")) == found


def test_read(open_server: Client, people: Omnigraph) -> None:
    answer = open_server.post("/read", {"query_source": NAMES})
    head = people.snapshot()
    assert list(ok(answer)) == [
        "query_name", "target", "row_count", "columns", "graph_commit_id", "manifest_version",
        "rows",
    ]  # fmt: skip
    assert ok(answer) == {
        "query_name": "names",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 4,
        "columns": ["p.age", "p.name"],
        "graph_commit_id": head.commit.graph_commit_id,
        "manifest_version": head.manifest_version,
        "rows": [
            {"p.age": 30, "p.name": "Alice"},
            {"p.age": 25, "p.name": "Bob"},
            {"p.age": 35, "p.name": "Charlie"},
            {"p.age": 28, "p.name": "Diana"},
        ],
    }
    assert answer.text.index('"p.age"') < answer.text.index('"p.name"')
    assert answer.headers["server-timing"].startswith("engine;dur=")
    assert "server;dur=" in answer.headers["server-timing"]


def test_read_takes_parameters_and_ignores_what_it_does_not_know(open_server: Client) -> None:
    body = {
        "query_source": OLDER + NAMES,
        "query_name": "older",
        "params": {"than": 29},
        "branch": None,
        "snapshot": None,
        "colour": "blue",
    }
    assert ok(open_server.post("/read", body))["rows"] == [{"name": "Alice"}, {"name": "Charlie"}]
    later = {"query": OLDER, "name": "older", "params": {"than": 29}}
    assert ok(open_server.post("/query", later))["row_count"] == 2


def test_read_of_no_rows(open_server: Client) -> None:
    found = ok(open_server.post("/query", {"query": OLDER, "params": {"than": 99}}))
    assert (found["row_count"], found["columns"], found["rows"]) == (0, ["name"], [])


def test_read_of_what_may_be_old(open_server: Client, people: Omnigraph) -> None:
    people.branch_create("aged")
    body = {"query": OLDER, "params": {"than": 0}, "branch": "aged"}
    before = ok(open_server.post("/query", body))["row_count"]
    people.load(b'{"type": "Person", "data": {"name": "Zoe", "age": 50}}', branch="aged")
    old = {**body, "max_age": 600}
    assert ok(open_server.post("/query", old))["row_count"] == before
    read = {"query_source": OLDER, "params": {"than": 0}, "branch": "aged", "max_age": 600}
    assert ok(open_server.post("/read", read))["row_count"] == before
    assert ok(open_server.post("/query", {**body, "max_age": 0}))["row_count"] == before + 1
    assert open_server.post("/query", {**body, "max_age": -1}).status_code == 422


def test_read_at_a_snapshot_a_version_a_tag_and_a_moment(
    open_server: Client, people: Omnigraph
) -> None:
    people.branch_create("past")
    before = people.snapshot("past")
    people.tag_create("before", "past")
    ok(add(open_server, "Erik", "past"))
    commit_id = before.commit.graph_commit_id
    counts = {
        "snapshot": {"snapshot": commit_id},
        "tag": {"tag": "before"},
        "version": {"version": before.manifest_version, "branch": "past"},
        "now": {"branch": "past"},
        "at": {"at": "2999-01-01T00:00:00Z", "branch": "past"},
    }
    found = {
        name: ok(open_server.post("/read", {"query_source": NAMES, **place}))
        for name, place in counts.items()
    }
    assert {name: item["row_count"] for name, item in found.items()} == {
        "snapshot": 4, "tag": 4, "version": 4, "now": 5, "at": 5,
    }  # fmt: skip
    assert found["snapshot"]["target"] == {"branch": None, "snapshot": commit_id}
    assert found["now"]["target"] == {"branch": "past", "snapshot": None}


def test_read_as_lines(open_server: Client) -> None:
    answer = open_server.post(
        "/read", {"query_source": OLDER, "params": {"than": 29}},
        headers={"Accept": "application/x-ndjson"},
    )  # fmt: skip
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    head, *rows = [json.loads(line) for line in answer.text.splitlines()]
    assert head["kind"] == "metadata"
    assert (head["query_name"], head["row_count"]) == ("older", 2)
    assert rows == [{"name": "Alice"}, {"name": "Charlie"}]


def test_read_as_arrow(open_server: Client, people: Omnigraph) -> None:
    answer = open_server.post(
        "/query", {"query": NAMES}, headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    with pa.ipc.open_stream(answer.content) as stream:
        table = stream.read_all()
    local = people.query("main", NAMES)
    assert table.equals(local.to_arrow())
    assert json.loads(table.schema.metadata[b"omnigraph.columns"]) == local.describe()
    told = {
        name: answer.headers[f"omnigraph-{name}"]
        for name in ("query-name", "branch", "commit", "manifest-version")
    }
    assert told == {
        "query-name": "names",
        "branch": "main",
        "commit": local.snapshot.commit.graph_commit_id,
        "manifest-version": str(local.snapshot.manifest_version),
    }


def test_explain_and_profile(open_server: Client) -> None:
    plan = ok(open_server.post("/explain", {"query": OLDER}))
    assert plan["query"] == "older"
    assert "work" not in plan["steps"][0]
    body = {"query": OLDER, "params": {"than": 29}, "profile": True}
    assert ok(open_server.post("/explain", body))["rows"] == 2


def test_export_reads_back(open_server: Client, people: Omnigraph) -> None:
    answer = open_server.post("/export", {})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert answer.text.encode() == b"".join(people.export_jsonl())
    some = open_server.post("/export", {"branch": "main", "type_names": ["Company"]})
    assert [json.loads(line)["type"] for line in some.text.splitlines()] == ["Company"] * 2


def test_change(open_server: Client, people: Omnigraph) -> None:
    people.branch_create("changing")
    found = ok(add(open_server, "Zoë", "changing"))
    assert {
        key: found[key]
        for key in ("branch", "query_name", "affected_nodes", "affected_edges", "actor_id")
    } == {
        "branch": "changing",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": None,
    }
    assert found["commit"].keys() >= COMMIT
    assert found["repeated"] is False
    body = {"query": INSERT, "name": "add", "params": {"name": "Yan"}, "branch": "changing"}
    later = ok(open_server.post("/mutate", body))
    assert later["commit"]["parent_commit_id"] == found["commit"]["graph_commit_id"]


def test_a_change_under_a_key_is_done_once(open_server: Client, people: Omnigraph) -> None:
    people.branch_create("keyed")
    first = ok(add(open_server, "Kim", "keyed", **{"Idempotency-Key": "k-1"}))
    again = ok(add(open_server, "Kim", "keyed", **{"Idempotency-Key": "k-1"}))
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["commit"] == first["commit"]
    other = add(open_server, "Lea", "keyed", **{"Idempotency-Key": "k-1"})
    assert other.status_code == 409


def test_a_change_that_depends_on_the_head(open_server: Client, people: Omnigraph) -> None:
    people.branch_create("heads")
    head = people.head_commit_id_for_branch("heads")
    body = {"query": INSERT, "params": {"name": "Ann"}, "branch": "heads"}
    condition = {"Omnigraph-If-Graph-Commit": head}
    path = "/mutate/if-graph-commit"
    made = ok(open_server.post(path, body, headers=condition))
    refused = open_server.post(path, body, headers=condition)
    assert refused.status_code == 412
    details = refused.json()["details"]
    assert (details["expected"], details["actual"]) == (head, made["commit"]["graph_commit_id"])
    assert refused.json()["precondition_failure"] == {
        "expected": head,
        "actual": made["commit"]["graph_commit_id"],
    }
    assert add(open_server, "Bea", "heads", **condition).status_code == 412
    assert open_server.post(path, body).status_code == 422


def test_ingest_makes_the_branch_and_load_does_not(open_server: Client) -> None:
    line = '{"type": "Person", "data": {"name": "Ida", "age": 41}}\n'
    missing = open_server.post("/load", {"data": line, "branch": "fresh"})
    assert missing.status_code == 404
    found = ok(open_server.post("/ingest", {"data": line, "branch": "fresh", "from": "main"}))
    assert found["tables"] == [{"table_key": "node:Person", "rows_loaded": 1}]
    assert {
        key: found[key] for key in ("branch", "base_branch", "branch_created", "mode", "actor_id")
    } == {
        "branch": "fresh",
        "base_branch": "main",
        "branch_created": True,
        "mode": "merge",
        "actor_id": None,
    }
    again = ok(open_server.post("/ingest", {"data": line, "branch": "fresh"}))
    assert again["branch_created"] is False
    assert ok(open_server.post("/load", {"data": line, "branch": "fresh"}))["base_branch"] is None


def test_snapshot(open_server: Client, people: Omnigraph) -> None:
    answer = open_server.get("/snapshot", params={"branch": "main"})
    found = ok(answer)
    assert found["branch"] == "main"
    keys = [table["table_key"] for table in found["tables"]]
    assert keys == sorted(keys)
    (person,) = [table for table in found["tables"] if table["table_key"] == "node:Person"]
    assert person["table_path"].startswith("nodes/")
    assert (person["row_count"], person["table_branch"]) == (4, None)
    assert found["commit"]["graph_commit_id"] == found["graph_commit_id"]
    assert found["graph_commit_id"] == people.head_commit_id_for_branch()
    again = open_server.get("/snapshot", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_branches_with_slashes_in_their_names(open_server: Client, people: Omnigraph) -> None:
    made = ok(open_server.post("/branches", {"name": "review/2026", "from": "main"}))
    assert {key: made[key] for key in ("uri", "from", "name", "actor_id")} == {
        "uri": people.uri,
        "from": "main",
        "name": "review/2026",
        "actor_id": None,
    }
    assert "review/2026" in ok(open_server.get("/branches"))["branches"]
    found = ok(open_server.get("/branches/review%2F2026"))
    assert found["forked_from"]["branch"] == "main"
    assert found["commit_id"] == people.head_commit_id_for_branch("review/2026")
    merged = ok(open_server.post("/branches/merge", {"source": "review/2026"}))
    assert merged["outcome"] == "already_up_to_date"
    deleted = ok(open_server.delete("/branches/review%2F2026"))
    assert deleted == {"uri": people.uri, "name": "review/2026", "actor_id": None}
    assert open_server.delete("/branches/review%2F2026").status_code == 404


def test_names_are_told_without_the_blanks_around_them(open_server: Client) -> None:
    made = ok(open_server.post("/branches", {"name": " padded ", "from": " main\n"}))
    assert (made["name"], made["from"]) == ("padded", "main")
    line = '{"type": "Person", "data": {"name": "Ida", "age": 41}}\n'
    body = {"data": line, "branch": " padded ", "from": " main "}
    loaded = ok(open_server.post("/ingest", body))
    assert (loaded["branch"], loaded["base_branch"]) == ("padded", "main")
    sent = open_server.request("POST", "/load/ndjson?branch=%20padded", content=line.encode())
    assert ok(sent)["branch"] == "padded"
    assert ok(open_server.delete("/branches/%20padded%20"))["name"] == "padded"


def test_a_branch_named_merge_can_be_deleted(open_server: Client) -> None:
    ok(open_server.post("/branches", {"name": "merge"}))
    assert ok(open_server.delete("/branches/merge"))["name"] == "merge"


def test_merge(open_server: Client, people: Omnigraph) -> None:
    for name in ("ours", "theirs"):
        people.branch_create(name)
    ok(add(open_server, "Max", "theirs"))
    body = {"source": "theirs", "target": "ours"}
    preview = ok(open_server.post("/branches/merge", {**body, "dry_run": True}))
    assert (preview["dry_run"], preview["commit"]) == (True, None)
    done = ok(open_server.post("/branches/merge", body))
    assert list(done)[:4] == ["source", "target", "outcome", "actor_id"]
    assert done["outcome"] == "fast_forward"
    assert ok(open_server.post("/branches/merge", body))["outcome"] == "already_up_to_date"


def test_merge_conflicts_and_choices(open_server: Client, people: Omnigraph) -> None:
    change = 'query set($age: I32) { update Person set { age: $age } where name = "Alice" }'
    for name, age in (("left", 31), ("right", 32)):
        people.branch_create(name)
        people.mutate(change, {"age": age}, branch=name)
    body = {"source": "right", "target": "left"}
    refused = open_server.post("/branches/merge", body)
    assert refused.status_code == 409
    found = refused.json()
    assert (found["code"], found["reason"]) == ("conflict", "merge.conflicts")
    assert "merge conflict" in found["error"]
    (conflict,) = found["merge_conflicts"]
    assert (conflict["table_key"], conflict["row_id"]) == ("node:Person", "Alice")
    assert conflict["kind"] == "divergent_update"
    choice = {"table_key": "node:Person", "row_id": "Alice", "choose": "theirs"}
    done = ok(open_server.post("/branches/merge", {**body, "choices": [choice]}))
    assert (done["outcome"], done["resolved"]) == ("merged", 1)
    twice = {**body, "choices": [choice, {**choice, "choose": "ours"}]}
    assert open_server.post("/branches/merge", twice).status_code == 400


def test_commits_newest_first(open_server: Client, people: Omnigraph) -> None:
    found = ok(open_server.get("/commits"))["commits"]
    assert [item["graph_commit_id"] for item in found] == [
        commit.graph_commit_id for commit in people.list_commits()
    ]
    assert all(item.keys() >= COMMIT for item in found)
    first = ok(open_server.get("/commits", params={"limit": 1}))
    assert first["commits"] == found[:1]
    rest = ok(open_server.get("/commits", params={"page_token": first["next_page_token"]}))
    assert rest == {"commits": found[1:]}
    one = open_server.get(f"/commits/{found[0]['graph_commit_id']}")
    assert ok(one) == found[0]
    tag = {"If-None-Match": one.headers["etag"]}
    path = f"/commits/{found[0]['graph_commit_id']}"
    assert open_server.get(path, headers=tag).status_code == 304


def test_runs(open_server: Client, people: Omnigraph) -> None:
    run = people.begin_run("main", operation_hash="stock:1")
    people.mutate(INSERT, {"name": "Run"}, branch=run.run_branch)
    assert ok(open_server.get(f"/runs/{run.run_id}")).keys() >= RUN
    listed = ok(open_server.get("/runs", params={"status": "running"}))["runs"]
    assert run.run_id in [item["run_id"] for item in listed]
    published = ok(open_server.post(f"/runs/{run.run_id}/publish"))
    assert published["status"] == "published"
    assert ok(open_server.post(f"/runs/{run.run_id}/publish", {})) == published
    assert open_server.post(f"/runs/{run.run_id}/abort").status_code == 409
    other = people.begin_run("main")
    assert ok(open_server.post(f"/runs/{other.run_id}/abort", {}))["status"] == "aborted"
    assert open_server.post(f"/runs/{other.run_id}/publish").status_code == 409
    missing = open_server.post("/runs/x/publish")
    assert (missing.status_code, missing.json()["error"]) == (404, "run 'x' not found")


def test_entity(open_server: Client) -> None:
    params = {"table_key": "node:Person", "id": "Bob"}
    found = ok(open_server.get("/entity", params=params))["entity"]
    assert (found["id"], found["age"]) == ("Bob", 25)
    assert ok(open_server.get("/entity", params={**params, "id": "Nobody"}))["entity"] is None
    assert ok(open_server.get("/entity", params={**params, "version": 1}))["entity"] is None


@pytest.mark.parametrize("path", ["/graphs/default/read", "/graphs/default//read"])
def test_a_graph_by_its_id(open_server: Client, path: str) -> None:
    answer = open_server.post(path, {"query_source": OLDER, "params": {"than": 29}})
    assert answer.status_code == (200 if "//" not in path else 404)


def test_head_and_options(open_server: Client) -> None:
    answer = open_server.request("HEAD", "/branches")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
    options = open_server.request("OPTIONS", "/branches")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
