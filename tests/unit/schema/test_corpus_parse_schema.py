"""Schema texts beside their canonical form, or the problems that refuse them.

Sections of a case: schema, then the rendered AST or the rendered diagnostics.
"""

from __future__ import annotations

from omnigraph_core.errors import SchemaSyntaxError
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.schema.render import render_schema
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases


@each("case", load_cases("parse_schema"), ids=str)
def test_parse(case: Case) -> None:
    text, _ = case.sections
    try:
        schema = parse_schema(text, "case.pg")
    except SchemaSyntaxError as error:
        check_case(case, str(error))
        return
    check_case(case, render_schema(schema))
    assert parse_schema(render_schema(schema)) == schema
