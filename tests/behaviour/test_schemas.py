"""Schemas: shown, planned, applied, refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.errors import (
    ConstraintViolation,
    SchemaApplyLocked,
    SchemaError,
    SchemaSyntaxError,
    UnsupportedMigration,
)
from omnigraph_core.evolve.report import SchemaApplyResult, SchemaPlanReport
from omnigraph_core.history.locks import schema_lock
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.storage.session import open_store
from tests.behaviour.stock import SCHEMA, part, put
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from tests.support.ways import Place

WIDER = (
    SCHEMA.replace("weight: F64?", 'mass: F64? @rename_from("weight")')
    .replace("@range(stock, 0..)", "@range(stock, 0..9223372036854775807)")
    .replace("size: I32?", "size: I64?")
    .replace("grade: enum(a, b)?", "grade: enum(a, b, c)?")
    .replace("what is stored", "whatever is „stored“")
    .replace("code: String @key", 'code: String @key  made: Date @default("2026-01-01")')
    .replace("@card(0..3)", "@card(0..9)")
    .replace("count: I64?", "count: I64? @index")
    + "node Note {\n  text: String\n  size: Vector(3)?\n  about: [DateTime]?\n  @unique(text)\n}\n"
    + "edge About: Note -> Part\n"
)
NARROWER = SCHEMA.replace("  weight: F64?\n", "").replace("is_new: Bool?", "is_new: Date?")


def described(report: SchemaPlanReport | SchemaApplyResult) -> list[str]:
    return [item.step.describe() for item in report.steps]


def test_the_schema_in_force(place: Place) -> None:
    graph = place.graph
    before = place.both(lambda graph: graph.schema_show())
    assert before.source == SCHEMA
    assert len(before.hash) >= 32
    graph.tag_create("v1")
    graph.schema_apply(WIDER)
    after = place.both(lambda graph: graph.schema_show("main"))
    assert after.source == WIDER
    assert after.hash != before.hash
    old = place.both(lambda graph: graph.schema_show(ReadTarget(tag="v1")))
    assert old == before
    assert graph.schema_show(graph.snapshot_at_version(2)) == before
    place.raised(lambda graph: graph.schema_show("none"))
    place.raised(lambda graph: graph.schema_show(ReadTarget(tag="none")))


@NOT_ON_S3
def test_a_plan_tells_every_step(shared: Place) -> None:
    plan = shared.both(lambda graph: graph.schema_plan(WIDER))
    expected = shared.at_hand.schema_plan(WIDER)
    assert described(plan) == described(expected)
    assert (plan.branch, plan.supported) == ("main", expected.supported)
    assert len({type(item.step) for item in plan.steps}) >= 7
    assert all(item.row_count >= 0 for item in plan.steps)
    same = shared.both(lambda graph: graph.schema_plan(SCHEMA))
    assert same == SchemaPlanReport("main", True, ())
    refused = shared.both(lambda graph: graph.schema_plan(NARROWER))
    assert not refused.supported
    assert described(refused) == described(shared.at_hand.schema_plan(NARROWER))
    allowed = shared.both(lambda graph: graph.schema_plan(NARROWER, allow_data_loss=True))
    assert len(allowed.steps) == len(refused.steps)


def test_a_schema_is_applied(place: Place) -> None:
    graph = place.graph
    plan = graph.schema_plan(WIDER)
    tried = place.both(lambda graph: graph.schema_apply(WIDER, dry_run=True))
    assert tried == SchemaApplyResult("main", False, 2, tried.steps, is_dry_run=True)
    assert told(tried.steps) == told(plan.steps)
    done = graph.schema_apply(WIDER)
    assert done.commit is not None
    assert told(done.commit) == told(place.at_hand.snapshot().commit)
    expected = SchemaApplyResult("main", True, 3, plan.steps)
    assert told(replace(done, commit=None)) == told(expected)
    again = place.both(lambda graph: graph.schema_apply(WIDER))
    assert again == SchemaApplyResult("main", False, 3, ())
    rows = place.both(
        lambda graph: graph.query(
            "main", "query q() { match { $b: Bin } return { $b.code, $b.made } order { $b.code } }"
        )
    )
    assert [row["b.made"] for row in rows.to_pylist()] == ["2026-01-01"] * 2


@NOT_ON_S3
def test_what_would_lose_data_is_refused_unless_wanted(place: Place) -> None:
    graph = place.graph
    head = graph.head_commit_id_for_branch()
    dropped = SCHEMA.replace("  weight: F64?\n", "")
    soft = graph.schema_apply(dropped)
    assert (soft.applied, soft.purge) == (True, None)
    graph.branch_reset("main", head, confirm=True)
    graph.branch_create("side")
    done = graph.schema_apply(dropped, branch="side", allow_data_loss=True)
    assert done.purge is not None
    assert (done.branch, done.purge.problem) == ("side", None)
    assert done.purge.held_by
    assert done.purge.grace_seconds > 0
    assert "weight" in place.both(lambda graph: graph.schema_show()).source


@NOT_ON_S3
def test_what_cannot_be_done_is_refused(place: Place) -> None:
    head = place.at_hand.head_commit_id_for_branch()
    put(place.at_hand, part("same", name="bolt"), part("other", name="bolt"))
    for source, kind in (
        (NARROWER, UnsupportedMigration),
        ("node Part {", SchemaSyntaxError),
        ("node Part { sku: String @key }\nedge E: Prt -> Part\n", SchemaError),
        (SCHEMA.replace("name: String? @index", "name: String? @unique"), ConstraintViolation),
        (SCHEMA.replace("label: String? @unique", "label: String @unique"), ConstraintViolation),
    ):
        problem = place.raised(lambda graph, source=source: graph.schema_apply(source))  # type: ignore[misc]
        assert isinstance(problem, kind), type(problem)
    for source in ("node Part {", "node Part { sku: Strin @key }"):
        place.raised(lambda graph, source=source: graph.schema_plan(source))  # type: ignore[misc]
    place.raised(lambda graph: graph.schema_apply(WIDER, branch="none"))
    place.raised(lambda graph: graph.schema_plan(WIDER, branch="none"))
    assert place.at_hand.list_commits()[1].graph_commit_id == head


def test_two_do_not_change_a_schema_at_once(place: Place) -> None:
    store = open_store(place.at_hand.uri)
    with schema_lock(store, "main", actor="somebody"):
        problem = place.raised(lambda graph: graph.schema_apply(WIDER))
        assert isinstance(problem, SchemaApplyLocked)
        assert "somebody" in problem.message
        assert problem.retryable
    assert place.graph.schema_apply(WIDER).applied
