"""Every operation asks the policy, for what the interface says it needs; denied, it does nothing.

The table is compared with the interface the server describes: an operation that is not in it fails.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.manifest.names import RUN_PREFIX
from omnigraph_core.policy.model import Action
from tests.support.served import ended, lines, new_stock, part, state_of, stock_server
from tests.support.server import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

TOKENS: Final = {"ann": "token-of-ann", "eve": "token-of-eve"}
POLICY: Final = f"""
version: 1
groups: {{team: [ann], strangers: [eve]}}
protected_branches: [main]
rules:
  - {{id: all, allow: {{actors: {{group: team}}, actions: [{", ".join(Action)}]}}}}
"""
READ: Final = "query skus() { match { $p: Part } return { $p.sku } }"
ADD: Final = "query add($sku: String) { insert Part { sku: $sku, name: $sku } }"
GROWN: Final = "node Shelf {\n  code: String @key\n}\n"
RECORD: Final = lines([part("new")]).decode()
HEAD: Final = {"Omnigraph-If-Graph-Commit": "HEAD"}

Asked = tuple[str, str | None, str | None]
READS: Final[list[Asked]] = [("read", "side", None)]
READS_NOWHERE: Final[list[Asked]] = [("read", None, None)]
CHANGES: Final[list[Asked]] = [("change", "side", None)]
ADMIN: Final[list[Asked]] = [("admin", None, None)]


@dataclass(frozen=True)
class Operation:
    """A request that is well-formed, and what the policy is asked for it, in this order.

    RUN, COMMIT, JOB and HEAD in it stand for ids that are known later.
    """

    method: str
    path: str
    asked: list[Asked]
    body: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    denied: int = 403

    def send(self, client: Client, names: dict[str, str]) -> Any:
        options = json.loads(filled(json.dumps(self.options), names))
        if self.body is not None:
            options["json"] = json.loads(filled(json.dumps(self.body), names))
        if "files" in options:
            options["files"] = {"file": ("Part.csv", b"sku,name\nf1,f\n")}
        return client.request(self.method, filled(self.path, names), **options)


def filled(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text


def get(path: str, asked: list[Asked]) -> Operation:
    return Operation("GET", path, asked)


def post(path: str, asked: list[Asked], body: Any = None, **more: Any) -> Operation:
    return Operation("POST", path, asked, body, **more)


ON_SIDE: Final = {"branch": "side"}
ENTITY: Final = "type=Part&id=p1&property=drawing"
OPERATIONS: Final[dict[str, Operation]] = {
    "getSnapshot": get("/snapshot?branch=side", READS),
    "read": post("/read", READS, {"query_source": READ, **ON_SIDE}),
    "query": post("/query", READS, {"query": READ, **ON_SIDE}),
    "explainQuery": post("/explain", READS, {"query": READ, **ON_SIDE}),
    "getEntity": get("/entity?table_key=node:Part&id=p1&branch=side", READS),
    "getBlob": get(f"/blob?{ENTITY}&branch=side", READS),
    "headBlob": Operation("HEAD", f"/blob?{ENTITY}&branch=side", READS),
    "getIndexes": get("/indexes?branch=side", READS),
    "getEmbeddings": get("/embeddings?branch=side", READS),
    "listCommits": get("/commits?branch=side", READS),
    "getCommitChanges": get("/commits/COMMIT/changes", READS),
    "pollChanges": get("/changes?branch=side", READS),
    "getChangeCursor": get("/changes/cursor?branch=side", READS),
    "diffBranches": post(
        "/branches/diff", [*READS, ("read", "main", None)], {"from": "side", "to": "main"}
    ),
    "getSchema": get("/schema", READS_NOWHERE),
    "planSchema": post("/schema/plan", READS_NOWHERE, {"schema_source": GROWN, **ON_SIDE}),
    "listBranches": get("/branches", READS_NOWHERE),
    "getBranch": get("/branches/side", [*READS_NOWHERE, *READS]),
    "getCommit": get("/commits/COMMIT", READS_NOWHERE),
    "listTags": get("/tags", READS_NOWHERE),
    "listRuns": get("/runs", READS_NOWHERE),
    "getRun": get("/runs/RUN_SEEN", READS_NOWHERE),
    "previewRun": post("/runs/RUN_SEEN/preview", READS_NOWHERE),
    "verify": post("/verify", READS_NOWHERE, ON_SIDE),
    "export": post("/export", [("export", "side", None)], ON_SIDE),
    "change": post("/change", CHANGES, {"query_source": ADD, "params": {"sku": "c"}, **ON_SIDE}),
    "mutate": post("/mutate", CHANGES, {"query": ADD, "params": {"sku": "m"}, **ON_SIDE}),
    "mutateIfGraphCommit": post(
        "/mutate/if-graph-commit",
        CHANGES,
        {"query": ADD, "params": {"sku": "i"}, **ON_SIDE},
        options={"headers": HEAD},
    ),
    "ingest": post(
        "/ingest",
        [("change", "ingested", None), ("branch_create", "side", "ingested")],
        {"data": RECORD, "branch": "ingested", "from": "side"},
    ),
    "load": post("/load", CHANGES, {"data": RECORD, **ON_SIDE}),
    "loadNdjson": post("/load/ndjson?branch=side", CHANGES, options={"content": RECORD}),
    "loadFiles": post("/load/files?branch=side", CHANGES, options={"files": True}),
    "backfillEmbeddings": post("/embeddings/backfill", CHANGES, ON_SIDE),
    "revertCommit": post(
        "/commits/COMMIT/revert", [("change", "spare", None), *READS], {"branch": "spare"}
    ),
    "pickCommit": post("/commits/COMMIT/pick", [("change", "spare", None), *READS],
                       {"into": "spare"}),
    "resetBranch": post(
        "/branches/reset",
        [("change", "spare", None), *READS],
        {"branch": "spare", "to": "side", "confirm": True},
    ),
    "applySchema": post(
        "/schema/apply",
        [("schema_apply", None, "spare")],
        {"schema_source": f"SCHEMA{GROWN}", "branch": "spare"},
    ),
    "createBranch": post(
        "/branches", [("branch_create", "side", "made")], {"name": "made", "from": "side"}
    ),
    "createTag": post("/tags", [("branch_create", "side", None)], {"name": "t", "target": "side"}),
    "beginRun": post("/runs", [("branch_create", "side", RUN_PREFIX)], {"target_branch": "side"}),
    "deleteBranch": Operation("DELETE", "/branches/doomed", [("branch_delete", None, "doomed")]),
    "deleteTag": Operation("DELETE", "/tags/v1", [("branch_delete", None, None)]),
    "mergeBranches": post(
        "/branches/merge",
        [("branch_merge", "merged", "side"), ("branch_delete", None, "merged")],
        {"source": "merged", "target": "side", "delete_branch": True},
    ),
    "publishRun": post("/runs/RUN_PUBLISHED/publish", [("run_publish", None, "side")]),
    "abortRun": post("/runs/RUN_ABORTED/abort", [("run_abort", None, "side")]),
    "failRun": post("/runs/RUN_FAILED/fail", [("run_abort", None, "side")]),
    "optimize": post("/optimize", ADMIN, ON_SIDE),
    "cleanup": post("/cleanup", ADMIN, {"keep": 100}),
    "ensureIndexes": post("/indexes", ADMIN, ON_SIDE),
    "getJob": get("/jobs/JOB", ADMIN),
    "cancelJob": Operation("POST", "/jobs/JOB/cancel", ADMIN),
    "listGraphs": get("/graphs", [("graph_list", None, None)]),
    "invokeQuery": post(
        "/queries/skus", [("invoke_query", "side", None), *READS], ON_SIDE, denied=404
    ),
    "invokeQueryIfGraphCommit": post(
        "/queries/add/if-graph-commit",
        [("invoke_query", "side", None), *CHANGES],
        {"params": {"sku": "q"}, **ON_SIDE},
        options={"headers": HEAD},
        denied=404,
    ),
}  # fmt: skip
"""Jobs are those of another actor here; their own are told to all."""

NOTHING: Final = {"listQueries": ("/queries", "queries"), "listJobs": ("/jobs", "jobs")}
"""Lists that are empty for those who may not see what is in them."""
FOR_ALL: Final = {"health", "ready", "metrics"}
"""What says nothing of any graph."""
AS_JOBS: Final = (
    "revertCommit", "pickCommit", "applySchema", "mergeBranches", "optimize", "cleanup", "verify",
    "ensureIndexes", "backfillEmbeddings", "loadNdjson", "loadFiles",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rights")
    (root / "queries").mkdir()
    (root / "queries" / "stored.gq").write_text(f"{READ}\n{ADD}\n")
    (root / "policy.yaml").write_text(POLICY)
    (root / "omnigraph.yaml").write_text(
        "graphs: {stock: {uri: ./stock}, free: {uri: ./free}}\nserver: {graph: stock}\n"
        "policy: {file: ./policy.yaml}\nquery: {roots: [./queries]}\n"
    )
    return root


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    graph = new_stock(root)
    for name in ("side", "spare", "doomed", "merged"):
        graph.branch_create(name)
    graph.load(lines([part("s1")]), branch="side")
    graph.load(lines([part("m1")]), branch="merged")
    graph.tag_create("v1", "side")
    return graph


@pytest.fixture(scope="module")
def server(root: Path, stock: Omnigraph) -> Iterator[Client]:
    """Without a token."""
    env = tokens(**TOKENS)
    with stock_server(root, config=root / "omnigraph.yaml", env=env) as client:
        yield client


@pytest.fixture(scope="module")
def names(server: Client, stock: Omnigraph) -> dict[str, str]:
    """Ids that requests need; the job is the doing of nobody who is asked for here."""
    found = {
        name: stock.begin_run("side").run_id
        for name in ("RUN_SEEN", "RUN_PUBLISHED", "RUN_ABORTED", "RUN_FAILED", "JOB")
    }
    schema = json.dumps(stock.schema_show().source)[1:-1]
    return {**found, "COMMIT": stock.list_commits("side")[0].graph_commit_id, "SCHEMA": schema}


def current(stock: Omnigraph, names: dict[str, str]) -> dict[str, str]:
    return {**names, "HEAD": stock.head_commit_id_for_branch("side")}


def decisions(caplog: pytest.LogCaptureFixture) -> list[Asked]:
    """What was asked of the policy, once each; the branch of a new run is called by its prefix."""
    facts = (record.__dict__ for record in caplog.records if record.name == "omnigraph.policy")
    asked = (
        (fact["action"], fact["branch"] or None, _shown(fact["target_branch"])) for fact in facts
    )
    return list(dict.fromkeys(asked))


def _shown(target: str) -> str | None:
    return RUN_PREFIX if target.startswith(RUN_PREFIX) else target or None


def test_the_table_has_every_operation(server: Client) -> None:
    paths = server.get("/openapi.json").json()["paths"].values()
    described = {operation["operationId"] for path in paths for operation in path.values()}
    assert described == {*OPERATIONS, *NOTHING, *FOR_ALL}
    assert {action for it in OPERATIONS.values() for action, _, _ in it.asked} == set(Action)


def test_denied_operations_do_nothing(
    server: Client, stock: Omnigraph, names: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    before = state_of(stock)
    with server.acting(TOKENS["eve"]) as eve, caplog.at_level(logging.INFO, "omnigraph.policy"):
        for name, operation in OPERATIONS.items():
            caplog.clear()
            answer = operation.send(eve, current(stock, names))
            assert answer.status_code == operation.denied, (name, answer.text)
            assert decisions(caplog) == operation.asked[:1], name
            assert operation.method == "HEAD" or set(answer.json()) <= {
                "error", "code", "reason", "details", "request_id",
            }  # fmt: skip
        for path, member in NOTHING.values():
            assert eve.get(path).json() == {member: []}
    assert state_of(stock) == before


def test_denied_jobs_are_not_begun(server: Client, stock: Omnigraph, names: dict[str, str]) -> None:
    before = state_of(stock)
    with server.acting(TOKENS["eve"]) as eve:
        for name in AS_JOBS:
            operation = OPERATIONS[name]
            headers = {"Prefer": "respond-async", **operation.options.get("headers", {})}
            wanted = Operation(
                operation.method,
                operation.path,
                operation.asked,
                operation.body,
                {**operation.options, "headers": headers},
            )
            answer = wanted.send(eve, current(stock, names))
            assert answer.status_code == 403, (name, answer.text)
    assert state_of(stock) == before


def test_each_operation_asks_for_the_right_thing(
    server: Client, stock: Omnigraph, names: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with server.acting(TOKENS["ann"]) as ann, caplog.at_level(logging.INFO, "omnigraph.policy"):
        for name, operation in OPERATIONS.items():
            caplog.clear()
            answer = operation.send(ann, current(stock, names))
            assert answer.status_code in (200, 409), (name, answer.text)
            assert answer.status_code == 200 or name == "cancelJob"
            assert decisions(caplog) == operation.asked, name


def test_jobs_of_ones_own_are_told_to_all(server: Client, stock: Omnigraph) -> None:
    """The right is asked when a job begins; to see how far it is takes none."""
    with server.acting(TOKENS["ann"]) as ann, server.acting(TOKENS["eve"]) as eve:
        begun = ann.post("/verify", headers={"Prefer": "respond-async"}).json()
        assert ended(ann, begun)["status"] == "done"
        assert eve.get(f"/jobs/{begun['job_id']}").status_code == 403
        assert eve.get("/jobs").json() == {"jobs": []}
