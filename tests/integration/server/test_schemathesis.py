"""Requests made up from the description of the interface: the server keeps to what it says.

No request may fail inside, get a status, a shape or a member that is not described, or come back
without an id. Most of the good ones name things that are there, so that operations get to do their
work.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.described import undescribed
from tests.support.examples import LONG
from tests.support.later import Later
from tests.support.processes import ROOT
from tests.support.served import new_stock, stock_server
from tests.support.server import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    import schemathesis
    from schemathesis import checks as named
    from schemathesis.generation import modes
    from schemathesis.specs.openapi import checks as of_openapi

    from tests.support.server import Client
else:
    schemathesis, named = Later("schemathesis"), Later("schemathesis.checks")
    modes = Later("schemathesis.generation.modes")
    of_openapi = Later("schemathesis.specs.openapi.checks")

TOKEN: Final = "token-of-ada"
STORED: Final = """
query part_by_sku($sku: String?) { match { $p: Part } return { $p.sku, $p.stock } }
query add_part($sku: String?) { insert Part { sku: "added", name: "stored" } }
"""
READ: Final = "query skus() { match { $p: Part } return { $p.sku, $p.stock } }"
WRITE: Final = 'query add() { insert Part { sku: "made", name: "made up" } }'
WRITERS: Final = frozenset({"change", "mutate", "mutateIfGraphCommit"})
NEEDS_TEXT: Final = frozenset({"query", "explainQuery", *WRITERS})
"""Operations whose query may have either of two names, so that the description demands neither."""
CHECKS: Final = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
EXAMPLES: Final = {"positive": 20, "negative": 10} if LONG else {"positive": 2, "negative": 1}
PLAIN: Final = frozenset({"health", "ready"})
"""Operations that take nothing: there is nothing to be wrong."""


def _operation_ids(document: Any) -> list[str]:
    return sorted(
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    )


OPERATIONS: Final = _operation_ids(json.loads((ROOT / "openapi.json").read_text()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root = tmp_path_factory.mktemp("made-up")
    graph = new_stock(root)
    graph.branch_create("draft")
    graph.tag_create("v1")
    (root / "queries").mkdir()
    (root / "queries" / "stored.gq").write_text(STORED)
    config = root / "omnigraph.yaml"
    config.write_text(
        "graphs: { stock: { uri: ./stock } }\nserver: { graph: stock }\n"
        "query: { roots: [./queries] }\n"
    )
    env = tokens(ada=TOKEN)
    with stock_server(root, config=config, env=env, token=TOKEN, lists_graphs=True) as client:
        yield client


@pytest.fixture(scope="module")
def described(server: Client) -> Any:
    """The interface as the live server describes it."""
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", timeout=120)
    assert _operation_ids(schema.raw_schema) == OPERATIONS
    return schema


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {TOKEN}"
        yield session


@pytest.fixture
def known(server: Client, name: str) -> dict[str, Any]:
    """Values that mean something to an operation, by the names of fields and parameters."""
    commit_id = server.get("/commits").json()["commits"][0]["graph_commit_id"]
    text = WRITE if name in WRITERS else READ
    values = {
        "branch": "main", "target_branch": "draft", "from": "main", "to": "draft",
        "into": "draft", "source": "draft", "target": "main", "tag": "v1",
        "snapshot": commit_id, "commit_id": commit_id, "commit": commit_id,
        "query_source": text, "query": text, "name": "part_by_sku", "params": None,
        "table_key": "node:Part", "id": "p1", "type": "Part", "property": "drawing",
        "data": '{"type": "Part", "data": {"sku": "p9", "name": "nine"}}',
        "schema_source": server.get("/schema").json()["schema_source"],
    }  # fmt: skip
    if name == "deleteBranch":
        server.post("/branches", {"name": "doomed"})
        values["branch"] = "doomed"
    if name.endswith(("Run", "Job")):
        values["run_id"] = values["job_id"] = server.post("/runs").json()["run_id"]
    return values


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (name, mode)
        for name in OPERATIONS
        for mode in EXAMPLES
        if mode == "positive" or name not in PLAIN
    ],
)
def test_an_operation_keeps_to_its_description(
    described: Any,
    session: requests.Session,
    known: dict[str, Any],
    name: str,
    mode: str,
) -> None:
    operation = described.find_operation_by_id(name)
    cases = operation.as_strategy(generation_mode=modes.GenerationMode(mode))
    checks = [named.not_a_server_error, *(getattr(of_openapi, check) for check in CHECKS)]
    left = st.sets(st.sampled_from(sorted(known)), max_size=3)

    @given(case=cases, left=left)
    @settings(
        max_examples=EXAMPLES[mode],
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any, left: set[str]) -> None:
        if mode == "positive":
            _name(case, name, {key: value for key, value in known.items() if key not in left})
        response = case.call(session=session, timeout=120)
        case.validate_response(response, checks=checks)
        assert response.headers["x-request-id"]
        assert _untold(described.raw_schema, operation, response) == []

    check()


def _untold(document: Any, operation: Any, response: Any) -> list[str]:
    """Members of an answer that its description does not have."""
    described = operation.definition.raw["responses"][str(response.status_code)].get("content", {})
    kind = "".join(response.headers.get("content-type", ()))
    if kind != "application/json" or not response.content:
        return []
    return sorted(set(undescribed(document, described[kind]["schema"], response.json())))


def _name(case: Any, name: str, known: dict[str, Any]) -> None:
    """Put what is there in the place of what was made up."""
    if name in NEEDS_TEXT and isinstance(case.body, dict):
        case.body.setdefault("query", None)
    for made_up in (case.path_parameters, case.query, case.body):
        if isinstance(made_up, dict):
            made_up.update((key, value) for key, value in known.items() if key in made_up)
