"""The schema over HTTP: shown as it was written, planned, and brought into force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.server.conftest import FIXTURES
from tests.support.served import document

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client


def test_schema(open_server: Client, people: Omnigraph) -> None:
    answer = open_server.get("/schema")
    found = document(answer)
    assert found["schema_source"] == (FIXTURES / "schemas" / "people.pg").read_text()
    assert found["schema_hash"] == people.schema_show().hash
    tag = {"If-None-Match": f'"other", {answer.headers["etag"]}'}
    assert open_server.get("/schema", headers=tag).status_code == 304


def test_schema_plan_and_apply(open_server: Client, people: Omnigraph) -> None:
    people.branch_create("shape")
    source = people.schema_show().source.replace("age: I32?", "age: I32?\n    email: String?")
    body = {"schema_source": source, "branch": "shape"}
    plan = document(open_server.post("/schema/plan", body))
    assert (plan["supported"], plan["step_count"]) == (True, 1)
    assert plan["steps"][0]["kind"] == "add_property"
    rehearsed = document(open_server.post("/schema/apply", {**body, "dry_run": True}))
    assert rehearsed["applied"] is False
    applied = document(open_server.post("/schema/apply", body))
    assert applied["applied"] is True
    assert applied["uri"] == people.uri
    assert applied["steps"] == rehearsed["steps"]
    assert document(open_server.post("/schema/apply", body))["applied"] is False
