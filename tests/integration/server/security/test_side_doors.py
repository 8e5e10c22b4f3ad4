"""Ways around a right over HTTP: by the branch of a run or a job, by rows that bring a schema, by a
job that waits, by the name of another graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.server.job_work import Crew
from tests.integration.server.security.asking import INSERT, READ, record
from tests.support.served import ended, new_stock, stock_server
from tests.support.server import serving, tokens
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.server.job_work import RunningJob
    from tests.support.server import Client

TOKENS: Final = {name: f"token-of-{name}" for name in ("cleo", "gus", "bob")}
POLICY: Final = """\
version: 1
groups: {clerks: [cleo], guests: [gus], workers: [bob]}
protected_branches: [main]
rules:
  - id: clerks-write
    allow: {actors: {group: clerks}, actions: [read, change], branch_scope: any}
  - id: drafts
    allow:
      actors: {group: clerks}
      actions: [branch_create, schema_apply]
      target_branch_scope: unprotected
  - id: guests-look
    allow:
      actors: {group: guests}
      actions: [read, export, change, invoke_query]
      branch_scope: unprotected
  - id: workers-read
    allow: {actors: {group: workers}, actions: [read], branch_scope: any}
  - id: workers-write
    allow: {actors: {group: workers}, actions: [change], branch_scope: unprotected}
  - id: workers-fork
    allow: {actors: {group: workers}, actions: [branch_create], target_branch_scope: unprotected}
"""
GROWN: Final = "node Shelf {\n  code: String @key\n}\n"
LATER: Final = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("doors")
    (root / "queries").mkdir()
    (root / "queries" / "stored.gq").write_text(READ)
    (root / "policy.yaml").write_text(POLICY)
    (root / "omnigraph.yaml").write_text(
        "graphs: {stock: {uri: ./stock}}\npolicy: {file: policy.yaml}\nquery: {roots: [queries]}\n"
    )
    return root


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def server(root: Path, stock: Omnigraph) -> Iterator[Client]:
    """Without a token."""
    env = tokens(**TOKENS)
    with stock_server(root, config=root / "omnigraph.yaml", env=env) as client:
        yield client


@pytest.fixture
def cleo(server: Client) -> Iterator[Client]:
    """Changes rows everywhere, and schemas of branches that are not protected."""
    with server.acting(TOKENS["cleo"]) as client:
        yield client


@pytest.fixture
def gus(server: Client) -> Iterator[Client]:
    """Has nothing to do with what is protected."""
    with server.acting(TOKENS["gus"]) as client:
        yield client


@pytest.fixture
def bob(server: Client) -> Iterator[Client]:
    """Reads everything, writes to what is not protected."""
    with server.acting(TOKENS["bob"]) as client:
        yield client


def denied(answer: Any) -> str:
    assert answer.status_code == 403, answer.text
    return str(answer.json()["error"])


def test_the_branch_of_a_run_is_no_window_to_its_target(gus: Client, stock: Omnigraph) -> None:
    run = stock.begin_run()
    at = {"branch": run.run_branch}
    made = {"snapshot": stock.head_commit_id_for_branch(run.run_branch)}
    for place in (at, made):
        message = denied(gus.post("/read", {"query_source": READ, **place}))
        assert message == "policy denied action 'read' on branch 'main' for actor 'gus'"
        denied(gus.get("/snapshot", params=place))
        assert gus.post("/queries/skus", place).status_code == 404
    denied(gus.post("/export", at))
    denied(gus.get("/changes", params={**at, "start": "beginning"}))
    denied(gus.post("/change", {"query_source": INSERT, "params": {"sku": "g"}, **at}))


def test_rows_bring_no_schema_along(cleo: Client, stock: Omnigraph) -> None:
    source = stock.schema_show().source
    assert cleo.post("/branches", {"name": "grown"}).status_code == 200
    applied = cleo.post("/schema/apply", {"schema_source": source + GROWN, "branch": "grown"})
    commit_id = applied.json()["commit"]["graph_commit_id"]
    head = stock.head_commit_id_for_branch()
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/branches/reset", {"branch": "main", "to": "grown", "confirm": True}),
        (f"/commits/{commit_id}/pick", {"into": "main"}),
        (f"/commits/{commit_id}/pick", {"into": "main", "dry_run": True}),
    ]
    message = "policy denied action 'schema_apply' targeting branch 'main' for actor 'cleo'"
    for path, body in asked:
        assert denied(cleo.post(path, body)) == message
    job = ended(cleo, cleo.post(asked[1][0], asked[1][1], headers=LATER).json())
    assert (job["status"], job["error"]["error"]) == ("failed", message)
    assert stock.head_commit_id_for_branch() == head


class Waiting:
    """Jobs that have been begun and still wait for their turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[tuple[RunningJob, Callable[[], object]]] = []
        monkeypatch.setattr(Crew, "take", lambda _crew, job, work: self.jobs.append((job, work)))

    def work(self) -> None:
        while self.jobs:
            job, work = self.jobs.pop(0)
            job.do(work)


def test_a_job_publishes_nothing_but_its_own_work(
    bob: Client, cleo: Client, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the branch of a run, and whoever began it must not add to what it will publish."""
    waiting = Waiting(monkeypatch)
    source = stock.schema_show().source
    head = stock.head_commit_id_for_branch()
    job = bob.post("/verify", headers=LATER).json()
    at = {"branch": f"__run__{job['run_id']}"}
    message = denied(bob.post("/load", {"data": record("smuggled"), **at}))
    assert message == "policy denied action 'change' on branch 'main' for actor 'bob'"
    waiting.work()
    assert ended(bob, job)["status"] == "done"
    assert stock.head_commit_id_for_branch() == head
    job = cleo.request("POST", "/load/ndjson", content=record("mine"), headers=LATER).json()
    at = {"branch": f"__run__{job['run_id']}"}
    message = denied(cleo.post("/schema/apply", {"schema_source": source + GROWN, **at}))
    assert "'schema_apply' targeting branch 'main'" in message
    waiting.work()
    assert ended(cleo, job)["status"] == "done"
    assert stock.schema_show().source == source
    run = bob.post("/runs", {}).json()  # a run of one's own is another thing: somebody publishes it
    assert bob.post("/load", {"data": record("b"), "branch": run["run_branch"]}).status_code == 200


def test_a_job_that_waits_is_judged_when_it_begins(
    cleo: Client, stock: Omnigraph, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(monkeypatch)
    head = stock.head_commit_id_for_branch()
    sent = [
        cleo.request("POST", "/load/ndjson", content=record("late"), headers=LATER),
        cleo.post(f"/commits/{head}/revert", {}, headers=LATER),
        cleo.post("/embeddings/backfill", {}, headers=LATER),
    ]
    assert [answer.status_code for answer in sent] == [202, 202, 202]
    policy = root / "policy.yaml"
    try:
        policy.write_text(POLICY.replace("clerks: [cleo]", "clerks: [carl]"))
        wait_until(lambda: cleo.get("/branches").status_code == 403, "the stricter policy")
        waiting.work()
        jobs = [ended(cleo, answer.json()) for answer in sent]
    finally:
        policy.write_text(POLICY)
    wait_until(lambda: cleo.get("/branches").status_code == 200, "the first policy")
    assert {job["status"] for job in jobs} == {"failed"}
    assert {job["error"]["reason"] for job in jobs} == {"policy.denied"}
    assert stock.head_commit_id_for_branch() == head


def test_the_list_of_graphs_is_judged_by_the_server(tmp_path: Path) -> None:
    """Not by the policy of whichever graph it is asked below."""
    for name in ("a", "b", "c"):
        new_stock(tmp_path, name)
    allow = "version: 1\ngroups: {t: [ann]}\nrules:\n  - {id: r, allow: {actors: {group: t}, "
    (tmp_path / "closed.yaml").write_text(allow + "actions: [read]}}\n")
    (tmp_path / "listing.yaml").write_text(allow + "actions: [read, graph_list]}}\n")
    (tmp_path / "omnigraph.yaml").write_text(
        json.dumps(
            {
                "graphs": {
                    "a": {"uri": "a", "policy": {"file": "closed.yaml"}},
                    "b": {"uri": "b"},
                    "c": {"uri": "c", "policy": {"file": "listing.yaml"}},
                },
                "server": {"graph": "a"},
            }
        )
    )
    config, env = tmp_path / "omnigraph.yaml", tokens(ann="t")
    with serving(config=config, env=env, token="t", lists_graphs=True) as client:
        for path in ("/graphs", "/graphs/a/graphs", "/graphs/b/graphs", "/graphs/c/graphs"):
            assert denied(client.get(path)).startswith("policy denied action 'graph_list'")
        assert client.get("/graphs/none/graphs").status_code == 404
