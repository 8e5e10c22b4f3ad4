"""The interface as it is described: the operations of 0.3 as they were, and the files in step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.server import reference
from tests.support.cases import each
from tests.support.processes import ROOT
from tests.support.server import serving, tokens

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

NDJSON = "application/x-ndjson"

# operationId: method, path, tag, body, answer
OPERATIONS = {
    "health": ("get", "/healthz", "health", None, "HealthOutput"),
    "getSnapshot": ("get", "/snapshot", "snapshots", None, "SnapshotOutput"),
    "read": ("post", "/read", "queries", "ReadRequest", "ReadOutput"),
    "export": ("post", "/export", "queries", "ExportRequest", NDJSON),
    "change": ("post", "/change", "mutations", "ChangeRequest", "ChangeOutput"),
    "getSchema": ("get", "/schema", "schema", None, "SchemaOutput"),
    "applySchema": (
        "post", "/schema/apply", "mutations", "SchemaApplyRequest", "SchemaApplyOutput",
    ),
    "ingest": ("post", "/ingest", "mutations", "IngestRequest", "IngestOutput"),
    "listBranches": ("get", "/branches", "branches", None, "BranchListOutput"),
    "createBranch": ("post", "/branches", "branches", "BranchCreateRequest", "BranchCreateOutput"),
    "deleteBranch": ("delete", "/branches/{branch}", "branches", None, "BranchDeleteOutput"),
    "mergeBranches": (
        "post", "/branches/merge", "branches", "BranchMergeRequest", "BranchMergeOutput",
    ),
    "listRuns": ("get", "/runs", "runs", None, "RunListOutput"),
    "getRun": ("get", "/runs/{run_id}", "runs", None, "RunOutput"),
    "publishRun": ("post", "/runs/{run_id}/publish", "runs", "(optional)", "RunOutput"),
    "abortRun": ("post", "/runs/{run_id}/abort", "runs", None, "RunOutput"),
    "listCommits": ("get", "/commits", "commits", None, "CommitListOutput"),
    "getCommit": ("get", "/commits/{commit_id}", "commits", None, "CommitOutput"),
}  # fmt: skip
# component: required keys, then keys that may be left out
BODIES = {
    "ReadRequest": ("query_source", "query_name params branch snapshot"),
    "ChangeRequest": ("query_source", "query_name params branch"),
    "ExportRequest": ("", "branch type_names table_keys"),
    "IngestRequest": ("data", "branch from mode"),
    "SchemaApplyRequest": ("schema_source", ""),
    "BranchCreateRequest": ("name", "from"),
    "BranchMergeRequest": ("source", "target"),
    "HealthOutput": ("status version", "source_version omnigraph_version"),
    "SnapshotOutput": ("branch manifest_version tables", ""),
    "SnapshotTableOutput": (
        "table_key table_path table_version table_branch row_count", "",
    ),
    "ReadOutput": ("query_name target row_count rows", "columns"),
    "ReadTargetOutput": ("branch snapshot", ""),
    "ChangeOutput": ("branch query_name affected_nodes affected_edges actor_id", ""),
    "IngestOutput": ("uri branch base_branch branch_created mode tables actor_id", ""),
    "IngestTableOutput": ("table_key rows_loaded", ""),
    "SchemaOutput": ("schema_source", ""),
    "SchemaApplyOutput": ("uri supported applied step_count manifest_version steps", ""),
    "BranchListOutput": ("branches", ""),
    "BranchCreateOutput": ("uri from name actor_id", ""),
    "BranchDeleteOutput": ("uri name actor_id", ""),
    "BranchMergeOutput": ("source target outcome actor_id", ""),
    "RunListOutput": ("runs", ""),
    "RunOutput": (
        "run_id target_branch run_branch base_snapshot_id base_manifest_version operation_hash "
        "actor_id status published_snapshot_id created_at updated_at", "",
    ),
    "CommitListOutput": ("commits", ""),
    "CommitOutput": (
        "graph_commit_id manifest_branch manifest_version parent_commit_id "
        "merged_parent_commit_id actor_id created_at", "",
    ),
    "ErrorOutput": ("error", "code merge_conflicts"),
    "MergeConflictOutput": ("table_key row_id kind message", ""),
}  # fmt: skip
ENUMS = {
    "ErrorCode": "unauthorized forbidden bad_request not_found conflict internal",
    "LoadMode": "overwrite append merge",
    "BranchMergeOutcome": "already_up_to_date fast_forward merged",
    "MergeConflictKindOutput": "divergent_insert divergent_update delete_vs_update orphan_edge "
    "unique_violation cardinality_violation value_constraint_violation",
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return reference.described()


def operations(document: dict[str, Any]) -> dict[str, tuple[str, str, dict[str, Any]]]:
    return {
        operation["operationId"]: (method, path, operation)
        for path, found in document["paths"].items()
        for method, operation in found.items()
    }


READS_BY_POST = {
    "cancelJob", "diffBranches", "explainQuery", "export", "planSchema", "previewRun", "query",
    "read",
}  # fmt: skip


def headers_of(operation: dict[str, Any]) -> set[str]:
    return {item["name"].lower() for item in operation["parameters"] if item["in"] == "header"}


def test_headers_are_described(document: dict[str, Any]) -> None:
    for name, (method, _, operation) in operations(document).items():
        found = headers_of({"parameters": [], **operation})
        is_write = method not in ("get", "head") and name not in READS_BY_POST
        assert ("idempotency-key" in found) == is_write, name
        assert ("prefer" in found) == ("202" in operation["responses"]), name
        assert ("omnigraph-if-graph-commit" in found) == ("412" in operation["responses"]), name
        for response in operation["responses"].values():
            assert "X-Request-Id" in response["headers"]
    assert "RequestId" in document["components"]["headers"]


def test_the_files_are_in_step_with_the_code(document: dict[str, Any]) -> None:
    """`python -m omnigraph_core.server.reference` writes them."""
    assert (ROOT / reference.DOCUMENT).read_text() == reference.document_text(document)
    assert (ROOT / reference.PAGE).read_text() == reference.page_text(document)


def test_the_document_as_a_whole(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["info"]["title"] == "Omnigraph API"
    assert document["info"]["license"]["name"] == "MIT"
    assert document["components"]["securitySchemes"] == {
        "bearer_token": {"type": "http", "scheme": "bearer"}
    }
    ids = [op["operationId"] for found in document["paths"].values() for op in found.values()]
    assert len(ids) == len(set(ids))


@each("name", OPERATIONS)
def test_operation(document: dict[str, Any], name: str) -> None:
    method, path, tag, body, answer = OPERATIONS[name]
    found_method, found_path, operation = operations(document)[name]
    assert (found_method, found_path, operation["tags"]) == (method, path, [tag])
    given = operation.get("requestBody")
    if body in (None, "(optional)"):
        assert given is None or not given.get("required", False)
    else:
        assert given["required"]
        schema = given["content"]["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{body}"}
    content = operation["responses"]["200"]["content"]
    if answer == NDJSON:
        assert NDJSON in content
    else:
        schema = content["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{answer}"}


def test_path_and_query_parameters_of_0_3(document: dict[str, Any]) -> None:
    found = operations(document)
    for name in ("getSnapshot", "listCommits"):
        parameters = {item["name"]: item for item in found[name][2]["parameters"]}
        assert parameters["branch"]["in"] == "query"
        assert not any(item["required"] for item in parameters.values())
    for name, parameter in (("deleteBranch", "branch"), ("getRun", "run_id")):
        assert [p["name"] for p in found[name][2]["parameters"] if p["in"] == "path"] == [parameter]


@each("name", BODIES)
def test_component(document: dict[str, Any], name: str) -> None:
    required, optional = (set(keys.split()) for keys in BODIES[name])
    schema = document["components"]["schemas"][name]
    assert set(schema.get("required", ())) == required
    assert schema["properties"].keys() >= required | optional


@each("name", ENUMS)
def test_enum(document: dict[str, Any], name: str) -> None:
    assert set(document["components"]["schemas"][name]["enum"]) >= set(ENUMS[name].split())


def test_every_refusal_is_described(document: dict[str, Any]) -> None:
    for name, (_, path, operation) in operations(document).items():
        refusals = {
            status: response
            for status, response in operation["responses"].items()
            if status >= "400"
        }
        if path in ("/healthz", "/readyz"):
            assert "security" not in operation
            continue
        assert operation["security"] == [{"bearer_token": []}], name
        assert refusals.keys() >= {"400", "401", "403", "404", "500"}, name
        for response in refusals.values():
            schema = response["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorOutput"}, name


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = reference.document_text(document)
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert names <= document["components"]["schemas"].keys()
    assert not names & {"HTTPValidationError", "ValidationError"}


def test_an_open_server_asks_for_no_token(
    open_server: Client, people: Omnigraph, document: dict[str, Any]
) -> None:
    described = open_server.get("/openapi.json")
    assert "bearer_token" not in described.text
    assert not any("security" in item for _, _, item in operations(described.json()).values())
    with serving(people.uri, env=tokens(ann="token-of-ann")) as client:
        assert client.get("/openapi.json").json() == document
