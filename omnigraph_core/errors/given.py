"""What was given is wrong: texts, records, parameters. Each error carries every problem found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors.root import ErrorKind, OmnigraphError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.diagnostics import Diagnostic
    from omnigraph_core.violations import Rule, Violation


class CompileError(OmnigraphError):
    """A schema or query text is wrong; carries every problem found, not the first."""

    kind = ErrorKind.BAD_REQUEST
    code = "compile"

    def __init__(self, diagnostics: Sequence[Diagnostic], *, hint: str | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(item.render() for item in self.diagnostics), hint=hint)

    def details(self) -> dict[str, object]:
        return {"diagnostics": [item.to_json() for item in self.diagnostics]}


class SchemaSyntaxError(CompileError):
    """A `.pg` text does not follow the grammar."""

    code = "schema.syntax"


class SchemaError(CompileError):
    """A `.pg` text parses but declares something that cannot be."""

    code = "schema.invalid"


class QuerySyntaxError(CompileError):
    """A `.gq` text does not follow the grammar."""

    code = "query.syntax"


class QueryTypeError(CompileError):
    """A query parses but does not fit the schema."""

    code = "query.type"


class UnsupportedMigration(CompileError):
    """A schema change that cannot be carried out on the accepted schema."""

    code = "schema.unsupported_migration"


class DataError(OmnigraphError):
    """Given data breaks rules; carries every violation, or names table, line and property."""

    kind = ErrorKind.BAD_REQUEST
    code = "data"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        table: str | None = None,
        line: int | None = None,
        property: str | None = None,
        violations: Sequence[Violation] = (),
        counts: Mapping[Rule, int] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.table = table
        self.line = line
        self.property = property
        self.violations = tuple(violations)
        """What is listed; `counts` tells how many there are of each rule."""
        self.counts = dict(counts or {})

    def details(self) -> dict[str, object]:
        if self.violations:
            return {
                "violations": [violation.to_json() for violation in self.violations],
                "counts": {str(rule): count for rule, count in self.counts.items()},
            }
        return {"table": self.table, "line": self.line, "property": self.property}


class RecordError(DataError):
    """An input record is malformed or holds a value of the wrong type."""

    code = "data.record"


class ConstraintViolation(DataError):
    """A row breaks a declared constraint."""

    code = "data.constraint"


class EndpointNotFound(DataError):
    """An edge refers to a node that does not exist."""

    code = "data.endpoint_not_found"


class DuplicateKey(DataError):
    """Two rows claim one key."""

    code = "data.duplicate_key"


class ParameterError(DataError):
    """Query parameters do not fit their declarations; lists every problem."""

    code = "data.parameter"

    def __init__(self, problems: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__("\n".join(problems), hint=hint)
        self.problems = tuple(problems)

    def details(self) -> dict[str, object]:
        return {"problems": list(self.problems)}


class CursorRejected(DataError):
    """A cursor of the change feed is damaged, or is of another branch or filter."""

    code = "changes.cursor_rejected"
