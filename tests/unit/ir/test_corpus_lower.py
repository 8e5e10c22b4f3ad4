"""Lowering and rules by example. Sections: schema, query, both explain texts."""

from __future__ import annotations

from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.explain import explain
from omnigraph_core.ir.lower import lower_query
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases


@each("case", load_cases("lower"), ids=str)
def test_case(case: Case) -> None:
    schema, query, _ = case.sections
    compiled = compile_one(query, compile_schema(schema))
    lowered, optimised = explain(lower_query(compiled.checked)), explain(compiled.ir)
    check_case(case, f"{lowered}\n\noptimised {'the same' if lowered == optimised else optimised}")
