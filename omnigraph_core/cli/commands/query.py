"""`omnigraph query …`: check queries, and show how they are carried out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.commands.explain import explain
from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.output import print_json
from omnigraph_core.query.lint import LintReport, SchemaSource, lint_queries
from omnigraph_core.schema.build import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.lint import Finding, QueryResult
    from omnigraph_core.schema.catalog import Catalog

app = typer.Typer(help="Check and explain queries.", no_args_is_help=True)

SchemaOption = Annotated[Path, typer.Option("--schema", help="Schema file (.pg).")]
QueryOption = Annotated[Path, typer.Option("--query", help="Query file (.gq).")]


@app.command()
def lint(
    schema: SchemaOption,
    query: QueryOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check every query of a file against a schema.

    Exits 1 when any query is refused; warnings refuse nothing.
    """
    source = SchemaSource("file", str(schema))
    report = lint_queries(read_text(query, what="query file"), str(query), _catalog(schema), source)
    if as_json:
        print_json(report.to_json())
    else:
        for line in _lines(report):
            typer.echo(line)
    raise typer.Exit(1 if report.has_errors else 0)


app.command("check", help="Another name for `lint`.")(lint)


app.command("explain")(explain)


def _catalog(schema: Path) -> Catalog:
    return compile_schema(read_text(schema, what="schema file"), str(schema))


def _lines(report: LintReport) -> Iterator[str]:
    for result in report.results:
        yield from _result_lines(result)
    for finding in report.findings:
        yield from _finding_lines(finding)
    yield (
        f"INFO  {len(report.results)} queries processed: {report.errors} errors,"
        f" {report.warnings} warnings, {report.infos} infos"
    )


def _result_lines(result: QueryResult) -> Iterator[str]:
    if result.is_valid:
        yield f"OK    query `{result.name}` ({result.kind})"
    for item in result.diagnostics:
        yield f"ERROR query `{result.name}`: type error: {item.code}: {item.message}"
        yield _indented(item.render())
    for warning in result.warnings:
        yield f"WARN  query `{result.name}`: {warning}"


def _finding_lines(finding: Finding) -> Iterator[str]:
    label = {"error": "ERROR", "warning": "WARN", "info": "INFO"}[finding.severity]
    yield f"{label:<5} {finding.code} {finding.message}"
    if finding.diagnostic is not None:
        yield _indented(finding.diagnostic.render())


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.splitlines())
