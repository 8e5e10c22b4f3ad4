"""Query texts beside their canonical form, or the problems that refuse them.

Sections of a case: queries, then the rendered AST or the rendered diagnostics.
"""

from __future__ import annotations

from omnigraph_core.errors import QuerySyntaxError
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.render import render_queries
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases


@each("case", load_cases("parse_query"), ids=str)
def test_parse(case: Case) -> None:
    text, _ = case.sections
    try:
        file = parse_queries(text, "case.gq")
    except QuerySyntaxError as error:
        check_case(case, str(error))
        return
    check_case(case, render_queries(file))
    assert parse_queries(render_queries(file)) == file
