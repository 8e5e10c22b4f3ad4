"""Documents become the values they were made of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnigraph_core.client.decode.commits import (
    NamedCommit,
    NamedSnapshot,
    decode_commit,
    decode_landed,
    decode_snapshot,
)
from omnigraph_core.client.decode.plans import decode_plan
from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.decode.schemas import decode_schema, decode_step
from omnigraph_core.client.decode.upkeep import decode_verified
from omnigraph_core.client.jobs import Job, JobStatus, decode_job, outcome
from omnigraph_core.diagnostics import Name
from omnigraph_core.engine.verifying.model import Checked, Finding, Severity, VerifyReport
from omnigraph_core.errors import ConflictError, StorageError, TagNotFound
from omnigraph_core.manifest.image import AcceptedSchema, GraphCommit
from omnigraph_core.plan.estimate import IndexFact
from omnigraph_core.plan.report import IndexUse, PlanReport, StepReport, Work
from omnigraph_core.schema.ast import Cardinality, Check, Key, Range, Unique
from omnigraph_core.schema.migrate import MigrationCode, Step, TypeKind, UnsupportedChange, steps
from omnigraph_core.types import PropType, Scalar
from tests.support.cases import each

COMMIT = GraphCommit("c1", None, "main", 4, "c0", None, "ada", 17, "load")
SCHEMA = AcceptedSchema("node A { }", '{\n  "a": "ü"\n}\n', "h1")


def sent(value: Any) -> Any:
    """A value as it arrives on the other side."""
    return json.loads(json.dumps(value.to_json()))


def never(*_: object) -> Any:
    raise AssertionError("nothing is to be fetched")


def test_plans() -> None:
    index = IndexUse("sku", IndexFact("BTREE", 90), 120)
    inner = StepReport("filter", "filter x", 2, pushed=("a = 1",), work=Work(3, 2, 0.25, 2))
    step = StepReport("scan", "scan $p", 40, ("by index",), indexes=(index,), inner=(inner,))
    for total in (None, Work(0, 7, 0.5)):
        plan = PlanReport("parts", (step,), (inner,), total)
        assert decode_plan(sent(plan)) == plan
        assert decode_plan(sent(plan)).text == plan.text


def test_reports_of_damage() -> None:
    finding = Finding(Severity.ERROR, "file.missing", "main", "no file", "restore it")
    report = VerifyReport(None, True, Checked(1, 2, 3, 4, 5, 6, 7), (finding,))
    assert decode_verified(sent(report)) == report


VECTOR = PropType(Scalar.VECTOR, dimension=3, is_nullable=True)
ENUM = PropType(Scalar.STRING, enum_values=("a", "b"))
PLACE = (TypeKind.NODE, "Part")
CONSTRAINTS = [
    Key((Name("sku"),)),
    Unique((Name("a"), Name("b"))),
    Range(Name("size"), 1, 2.5),
    Range(Name("size"), None, None),
    Check(Name("sku"), "^[a-z]+$"),
]
STEPS: list[Step] = [
    steps.AddProperty(*PLACE, "v", VECTOR),
    steps.AddProperty(*PLACE, "e", ENUM, "a"),
    steps.RenameProperty(*PLACE, "a", "b"),
    steps.ChangeInterfaces(*PLACE, ("I",), ()),
    steps.ChangeEmbedding(*PLACE, "v", "note", None),
    steps.ExtendEnum(*PLACE, "e", ("c",)),
    steps.ChangeCardinality(TypeKind.EDGE, "Holds", Cardinality(0, None), Cardinality(1, 3)),
    steps.DropProperty(*PLACE, "v", steps.DropMode.HARD, tier=steps.Tier.DESTRUCTIVE),
    *(steps.AddConstraint(*PLACE, constraint) for constraint in CONSTRAINTS),
    UnsupportedChange("node:Part.v", "no way", MigrationCode.TYPE_CHANGE),
]


@each("step", STEPS, ids=lambda step: str(step.kind))
def test_steps_of_migrations(step: Step) -> None:
    found = decode_step(sent(step))
    assert found == step
    assert found.describe() == step.describe()


def test_every_kind_of_step_is_known() -> None:
    for kind in steps.StepKind:
        with pytest.raises(TypeError, match="missing"):  # the fields, not the class
            decode_step({"kind": str(kind)})


def test_schemas() -> None:
    document = {"schema_source": SCHEMA.source, "schema_hash": "h1", "document": {"a": "ü"}}
    assert decode_schema(document) == SCHEMA
    assert decode_schema({**document, "document": SCHEMA.document}) == SCHEMA


def test_commits_that_are_named_are_fetched_once() -> None:
    fetched: list[str] = []

    def fetch(commit_id: str) -> GraphCommit:
        fetched.append(commit_id)
        return COMMIT

    named = NamedCommit("c1", fetch)
    assert repr(named) == "GraphCommit('c1', …)"
    assert fetched == []
    assert named == COMMIT
    assert named == COMMIT
    assert (named.parents, hash(named)) == (("c0",), hash(COMMIT))
    assert fetched == ["c1"]
    with pytest.raises(AttributeError):
        named.nothing  # type: ignore[attr-defined] # noqa: B018


def test_answers_to_writes_name_their_commit() -> None:
    assert decode_landed({"commit_id": None}, never) is None
    assert decode_landed({"commit": sent(COMMIT), "commit_id": "c1"}, never) == COMMIT
    found = decode_landed({"commit_id": "c1"}, never)
    assert found is not None
    assert found.graph_commit_id == "c1"


def test_commits_of_other_branches() -> None:
    document = {**sent(COMMIT), "manifest_branch": "review"}
    assert decode_commit(document).incarnation == ""
    assert decode_commit({**document, "incarnation": "i"}).incarnation == "i"


TABLE = {
    "table_key": "node:A", "table_path": "nodes/1", "table_version": 2, "table_branch": None,
    "row_count": 3, "physical_version": str(2**63), "fragment_count": 1, "operation": "append",
}  # fmt: skip
SNAPSHOT = {
    "branch": "main", "manifest_version": 4, "incarnation": "main", "commit": sent(COMMIT),
    "tables": [TABLE], "schema_hash": "h1",
}  # fmt: skip


def test_snapshots() -> None:
    found = decode_snapshot(SNAPSHOT, lambda _: SCHEMA)
    assert found.table("node:A").row_count == 3
    assert found.table("node:A").physical_version == 2**63
    assert (found.commit, found.schema) == (COMMIT, SCHEMA)
    assert found == decode_snapshot(SNAPSHOT, lambda _: SCHEMA)
    assert "node:A" in repr(found)
    named = NamedSnapshot("main", 4, NamedCommit("c1", never), lambda *_: found)
    assert named == found
    assert found == named
    assert hash(named) == hash(found)
    assert named.image is found.image
    with pytest.raises(AttributeError):
        named.nothing  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(AttributeError):
        found.image.nothing  # type: ignore[attr-defined] # noqa: B018


def test_jobs() -> None:
    job = Job("j1", "j1", "load", JobStatus.FAILED, "main", None, 1, 2, {"read": 3},
              error=TagNotFound("no tag"))  # fmt: skip
    found = decode_job(sent(job))
    assert sent(found) == sent(job)
    with pytest.raises(TagNotFound):
        outcome(found)
    done = Job("j1", "j1", "load", JobStatus.DONE, None, None, 1, 2, result={"a": 1})
    assert decode_job(sent(done)) == done
    assert outcome(done) == {"a": 1}


@pytest.mark.parametrize(
    ("status", "text"), [("cancelled", "was cancelled"), ("done", "no longer")]
)
def test_jobs_without_a_result(status: str, text: str) -> None:
    with pytest.raises(ConflictError, match=text):
        outcome(Job("j1", "j1", "load", JobStatus(status), None, None, 1, 2))


@each("document", [None, [], {}, {"manifest_branch": 1}, "text"])
def test_documents_of_another_shape(document: object) -> None:
    with pytest.raises(StorageError, match="cannot be understood"):
        understood(decode_commit, document)
