"""Lint: every query of a file checked against a schema, plus findings no type error covers.

Findings are values, never exceptions: one report for a whole file, in the shape clients know.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Diagnostic, Severity, Source
from omnigraph_core.errors import QuerySyntaxError
from omnigraph_core.query.ast import Mutation, Read, Update
from omnigraph_core.query.check import check_queries
from omnigraph_core.query.checked import QueryKind
from omnigraph_core.query.connect import unconnected_parts
from omnigraph_core.query.operation import describe_operation
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.walk import iter_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.check import CheckedFile, QueryCheck
    from omnigraph_core.query.operation import Operation
    from omnigraph_core.schema.catalog import Catalog, NodeType

_SEVERITY_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_NO_PARAMETERS = "mutation declares no parameters: it writes the same values every time it runs"


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Where the schema came from: a `file` with a path, or a `graph` with a uri."""

    kind: str
    place: str

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "path" if self.kind == "file" else "uri": self.place}


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    diagnostic: Diagnostic | None = None

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
        }
        if self.type_name is not None:
            found["type_name"] = self.type_name
        if self.property is not None:
            found["property"] = self.property
        if self.query_names:
            found["query_names"] = list(self.query_names)
        if self.diagnostic is not None:
            found["diagnostic"] = self.diagnostic.to_json()
        return found


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One query: valid with its operation, or refused with every reason."""

    name: str
    kind: QueryKind
    warnings: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    operation: Operation | None

    @property
    def is_valid(self) -> bool:
        return not self.diagnostics

    @property
    def error(self) -> str:
        return "\n".join(f"type error: {item.code}: {item.message}" for item in self.diagnostics)

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "name": self.name,
            "kind": str(self.kind),
            "status": "ok" if self.is_valid else "error",
        }
        if self.warnings:
            found["warnings"] = list(self.warnings)
        if not self.is_valid:
            found["error"] = self.error
            found["diagnostics"] = [item.to_json() for item in self.diagnostics]
        if self.operation is not None:
            found["operation"] = self.operation.to_json()
        return found


@dataclass(frozen=True, slots=True)
class LintReport:
    schema_source: SchemaSource
    query_path: str
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        return sum(not r.is_valid for r in self.results) + self._count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        return sum(len(r.warnings) for r in self.results) + self._count(Severity.WARNING)

    @property
    def infos(self) -> int:
        return self._count(Severity.INFO)

    @property
    def has_errors(self) -> bool:
        return self.errors > 0

    def _count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def to_json(self) -> dict[str, object]:
        return {
            "status": "error" if self.has_errors else "ok",
            "schema_source": self.schema_source.to_json(),
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }


def lint_queries(text: str, path: str, catalog: Catalog, schema_source: SchemaSource) -> LintReport:
    """Check every query of a file; a text that does not parse is one finding per problem."""
    try:
        parsed = parse_queries(text, path)
    except QuerySyntaxError as refused:
        findings = tuple(_syntax_finding(item) for item in refused.diagnostics)
        return LintReport(schema_source, path, (), findings)
    checked = check_queries(parsed, catalog, Source(text, path))
    results = tuple(_result(check, catalog) for check in checked.results)
    findings = tuple(sorted(_findings(checked, catalog), key=_sort_key))
    return LintReport(schema_source, path, results, findings)


def _syntax_finding(item: Diagnostic) -> Finding:
    message = f"parse error: {item.file}:{item.line}:{item.column}: {item.message}"
    return Finding(Severity.ERROR, "Q000", message, diagnostic=item)


def _sort_key(finding: Finding) -> tuple[int, str, str, str]:
    return (
        _SEVERITY_ORDER[finding.severity],
        finding.type_name or "",
        finding.property or "",
        finding.message,
    )


def _result(check: QueryCheck, catalog: Catalog) -> QueryResult:
    is_mutation = isinstance(check.query.body, Mutation)
    return QueryResult(
        name=check.query.name,
        kind=QueryKind.MUTATION if is_mutation else QueryKind.READ,
        warnings=(_NO_PARAMETERS,) if is_mutation and not check.query.params else (),
        diagnostics=check.diagnostics,
        operation=describe_operation(check.checked, catalog) if check.checked else None,
    )


def _findings(file: CheckedFile, catalog: Catalog) -> Iterator[Finding]:
    yield from _never_set(file, catalog)
    for check in file.results:
        yield from _unused_parameters(check)
        if isinstance(check.query.body, Read):
            yield from _page_without_order(check)
            yield from _unconnected(check)


def _never_set(file: CheckedFile, catalog: Catalog) -> Iterator[Finding]:
    """L201: a property that can be null and that no update of its type ever sets."""
    targets: dict[str, set[str]] = defaultdict(set)
    assigned: dict[str, set[str]] = defaultdict(set)
    for check in file.results:
        if not isinstance(check.query.body, Mutation):
            continue
        for statement in check.query.body.statements:
            if isinstance(statement, Update) and statement.type_name in catalog.nodes:
                assigned[statement.type_name].update(a.name for a in statement.assignments)
                if check.checked is not None:
                    targets[statement.type_name].add(check.query.name)
    for type_name, names in sorted(targets.items()):
        for prop in _settable(catalog.nodes[type_name]):
            if prop not in assigned[type_name]:
                message = f"nullable property `{type_name}.{prop}` is not set by any update"
                yield Finding(
                    Severity.WARNING, "L201", message, type_name, prop, tuple(sorted(names))
                )


def _settable(node: NodeType) -> Iterator[str]:
    for name, prop in node.properties.items():
        if prop.type.is_nullable and name not in (node.key or ()) and name not in node.embeddings:
            yield name


def _unused_parameters(check: QueryCheck) -> Iterator[Finding]:
    """L203: almost always a misspelt use of it, which then matched something else."""
    used = set(iter_variables(check.query))
    for param in check.query.params:
        if param.name not in used:
            message = f"parameter `${param.name}` of query `{check.query.name}` is never used"
            names = (str(check.query.name),)
            yield Finding(Severity.WARNING, "L203", message, query_names=names)


def _page_without_order(check: QueryCheck) -> Iterator[Finding]:
    """L204: rows come in no promised order, so a page may repeat or miss some."""
    read = check.query.body
    if isinstance(read, Read) and read.offset is not None and not read.order:
        message = f"query `{check.query.name}` has `offset` without `order`: pages may overlap"
        names = (str(check.query.name),)
        yield Finding(Severity.WARNING, "L204", message, query_names=names)


def _unconnected(check: QueryCheck) -> Iterator[Finding]:
    """L205: parts of a match that share nothing are multiplied with each other."""
    if check.checked is None:
        return
    parts = unconnected_parts(check.checked)
    if len(parts) > 1:
        shown = " x ".join("{" + ", ".join(f"${name}" for name in part) + "}" for part in parts)
        message = f"query `{check.query.name}` combines every row of unconnected parts: {shown}"
        names = (str(check.query.name),)
        yield Finding(Severity.WARNING, "L205", message, query_names=names)
