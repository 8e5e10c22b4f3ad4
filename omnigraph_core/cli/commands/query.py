"""`omnigraph query …`: run a query; check queries, and show how they are carried out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from omnigraph_core.cli.commands.explain import explain
from omnigraph_core.cli.commands.read import read
from omnigraph_core.cli.files import read_text
from omnigraph_core.cli.options import JsonOption
from omnigraph_core.cli.output import print_json
from omnigraph_core.cli.query_text import query_text
from omnigraph_core.cli.target import GivenGraph, on_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.lint import Finding, LintReport, QueryResult, SchemaSource
    from omnigraph_core.schema.catalog import Catalog

_reads = typer.Typer(add_completion=False, rich_markup_mode=None)
_reads.command()(read)


class ReadOrCommand(TyperGroup):
    """A command of the group if one is named, else `read` under the name of the group."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        if not args or args[0] in self.commands or args[0] == "--help":
            return super().make_context(info_name, args, parent, **extra)
        return _read_command().make_context(info_name, args, parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] [URI|VALUE]...")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="   or: ")
        self.format_help_text(ctx, formatter)
        _read_command().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@cache
def _read_command() -> Any:
    return typer.main.get_command(_reads)


app = typer.Typer(
    cls=ReadOrCommand,
    help="Run a query and print its rows, as `read` does; or check and explain queries.",
    no_args_is_help=True,
)

SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", metavar="FILE", help="Schema file (.pg), in place of a graph."),
]
QueryOption = Annotated[Path, typer.Option("--query", metavar="FILE", help="Query file (.gq).")]
BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Branch whose schema counts.  [default: main]"),
]


@app.command()
@on_graph
def lint(
    graph: GivenGraph,
    query: QueryOption,
    schema: SchemaOption = None,
    branch: BranchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every query of a file against a schema: that of a graph, or of a file.

    Exits 1 when any query is refused; warnings refuse nothing.
    """
    from omnigraph_core.query.lint import lint_queries  # slow, and for this alone

    text = query_text(graph.config, query, None)
    catalog, source = _schema(graph, schema, branch)
    report = lint_queries(text.text, text.name, catalog, source)
    if as_json:
        print_json(report.to_json())
    else:
        for line in _lines(report):
            typer.echo(line)
    raise typer.Exit(1 if report.has_errors else 0)


app.command("check", help="Another name for `lint`.")(lint)
app.command("explain")(explain)


def _schema(
    graph: GivenGraph, schema: Path | None, branch: str | None
) -> tuple[Catalog, SchemaSource]:
    from omnigraph_core.query.lint import SchemaSource  # slow, and for this alone
    from omnigraph_core.schema.build import compile_schema

    if schema is not None:
        if graph.given or branch is not None:
            raise typer.BadParameter("--schema excludes a graph and --branch")
        text = read_text(schema, what="schema file")
        return compile_schema(text, str(schema)), SchemaSource("file", str(schema))
    if not graph.is_known:
        raise typer.BadParameter(
            "a graph URI must be provided to check the queries against, or a --schema"
        )
    opened = graph.open()
    with graph.busy("reading the schema"):
        accepted = opened.schema_show(graph.branch(branch))
    return compile_schema(accepted.source, graph.address), SchemaSource("repo", graph.address)


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
