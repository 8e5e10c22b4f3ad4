"""Lint cases: schema, query file, then the report as lines."""

from __future__ import annotations

import json

from omnigraph_core.query.lint import LintReport, SchemaSource, lint_queries
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases


def shown(report: LintReport) -> str:
    """Counts, then a JSON line per result and finding; positions are the checker's own cases."""
    document = report.to_json()
    counts = ("status", "queries_processed", "errors", "warnings", "infos")
    lines = [" ".join(f"{name}={document[name]}" for name in counts)]
    for part in ("results", "findings"):
        for row in document[part]:  # type: ignore[attr-defined]
            kept = {k: v for k, v in row.items() if k not in ("diagnostics", "diagnostic")}
            lines.append(f"{part}: {json.dumps(kept, ensure_ascii=False)}")
    return "\n".join(lines)


@each("case", load_cases("lint"), ids=str)
def test_lint(case: Case) -> None:
    schema, queries, _ = case.sections
    source = SchemaSource("file", "schema.pg")
    check_case(case, shown(lint_queries(queries, "q.gq", compile_schema(schema), source)))
