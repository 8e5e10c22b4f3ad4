"""Plans by example. Sections: schema, query, the report and what each step leaves over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.build import plan_query
from omnigraph_core.plan.explain import explain_plan
from omnigraph_core.plan.steps import AntiJoinStep, OptionalStep
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases
from tests.support.plan_stats import FixedStats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.plan.steps import Steps


@each("case", load_cases("plan"), ids=str)
def test_case(case: Case) -> None:
    schema, query, _ = case.sections
    catalog = compile_schema(schema)
    ir = compile_one(query, catalog).ir
    assert isinstance(ir, QueryIR)
    plan = plan_query(ir, catalog)
    report = explain_plan(plan, FixedStats(), catalog)
    check_case(case, "\n".join((report.text, "", *needs(plan.steps))))


def needs(steps: Steps, indent: str = "") -> Iterator[str]:
    """The variables each step leaves, by its kind."""
    for step in steps:
        names = " ".join(f"${name}" for name in sorted(step.needed)) or "nothing"
        yield f"{indent}{step.label.split()[0]} leaves {names}"
        if isinstance(step, AntiJoinStep | OptionalStep):
            yield from needs(step.inner, f"{indent}  ")
