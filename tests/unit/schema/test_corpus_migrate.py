"""tests/corpus/migrate: accepted schema --- desired schema --- the steps, one per line.

A title ending in "(data loss allowed)" plans with it. An empty plan reads `no changes`.
"""

from __future__ import annotations

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import build_document
from omnigraph_core.schema.migrate import (
    MIGRATION_CODES,
    DataWork,
    MigrationPlan,
    StepKind,
    Tier,
    plan_migration,
)
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases

CASES = load_cases("migrate")


def plan(case: Case) -> MigrationPlan:
    accepted, desired, _ = case.sections
    document = build_document(compile_schema(accepted), accepted=None, domain="domain")
    allowed = case.title.endswith("(data loss allowed)")
    return plan_migration(document, compile_schema(desired), allow_data_loss=allowed)


@each("case", CASES, ids=str)
def test_plan(case: Case) -> None:
    steps = [step.describe() for step in plan(case).steps]
    check_case(case, "\n".join(steps) or "no changes")


@each("case", CASES, ids=str)
def test_applying_a_plan_leaves_nothing_to_do(case: Case) -> None:
    accepted, desired, _ = case.sections
    before = build_document(compile_schema(accepted), accepted=None, domain="domain")
    after = build_document(compile_schema(desired), accepted=before)
    assert plan_migration(after, compile_schema(desired)).steps == ()


def test_the_corpus_shows_every_step_tier_data_work_and_code() -> None:
    steps = [step for case in CASES for step in plan(case).steps]
    assert {step.kind for step in steps} == set(StepKind)
    assert {step.tier for step in steps} == {*Tier, None}
    assert {step.data_work for step in steps} == {*DataWork, None}
    codes = {step.code for case in CASES for step in plan(case).unsupported}
    assert codes == set(MIGRATION_CODES)
