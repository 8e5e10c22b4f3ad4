"""Every error OmniGraph raises on purpose. A test compares this drawing with the classes.

OmnigraphError
├── CompileError
│   ├── SchemaSyntaxError
│   ├── SchemaError
│   ├── QuerySyntaxError
│   ├── QueryTypeError
│   └── UnsupportedMigration
├── DataError
│   ├── RecordError
│   ├── ConstraintViolation
│   ├── EndpointNotFound
│   ├── DuplicateKey
│   └── ParameterError
├── NotFoundError
│   ├── BranchNotFound
│   ├── CommitNotFound
│   ├── SnapshotNotFound
│   ├── TableNotFound
│   ├── TagNotFound
│   ├── RunNotFound
│   ├── QueryNotFound
│   └── GraphNotFound
├── ConflictError
│   ├── VersionConflict
│   ├── PreconditionFailed
│   ├── PublishContention
│   ├── AlreadyExists
│   ├── BranchInUse
│   ├── SchemaApplyLocked
│   └── MergeConflicts
├── CommitOutcomeUnknown
├── PolicyDenied
├── Unauthenticated
├── ConfigError
├── FormatTooNew
├── StorageError
│   └── ObjectNotFound
├── EmbeddingError
├── QueryStopped
│   ├── BudgetExceeded
│   ├── QueryTimeout
│   └── QueryCancelled
└── InvariantBroken

`kind` is closed and equals the wire codes; `code` is a stable dotted string listed in
docs/reference/errors.md; `retryable` says whether the same call may succeed later unchanged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.diagnostics import Diagnostic
    from omnigraph_core.violations import Rule, Violation


class ErrorKind(StrEnum):
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    INTERNAL = "internal"


class OmnigraphError(Exception):
    """Root of every error raised on purpose."""

    kind: ClassVar[ErrorKind] = ErrorKind.INTERNAL
    code: ClassVar[str] = "internal"
    retryable: bool = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def details(self) -> dict[str, object]:
        """Facts beyond the message, JSON-ready; the same on every surface."""
        return {}

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


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


class NotFoundError(OmnigraphError):
    """Something named does not exist."""

    kind = ErrorKind.NOT_FOUND
    code = "not_found"


class BranchNotFound(NotFoundError):
    """No branch of that name."""

    code = "not_found.branch"


class CommitNotFound(NotFoundError):
    """No commit of that id."""

    code = "not_found.commit"


class SnapshotNotFound(NotFoundError):
    """No snapshot at that version, id or time."""

    code = "not_found.snapshot"


class TableNotFound(NotFoundError):
    """The snapshot holds no table of that key."""

    code = "not_found.table"


class TagNotFound(NotFoundError):
    """No tag of that name."""

    code = "not_found.tag"


class RunNotFound(NotFoundError):
    """No run of that id."""

    code = "not_found.run"


class QueryNotFound(NotFoundError):
    """A query file holds no query of that name, or the name is needed to choose one."""

    code = "not_found.query"


class GraphNotFound(NotFoundError):
    """No graph at that address."""

    code = "not_found.graph"


class ConflictError(OmnigraphError):
    """The request is well-formed but the current state refuses it."""

    kind = ErrorKind.CONFLICT
    code = "conflict"


class VersionConflict(ConflictError):
    """A table moved since it was read: expected one version, found another."""

    code = "manifest.version_conflict"
    retryable = True

    def __init__(self, table_key: str, expected: int | None, actual: int | None) -> None:
        super().__init__(
            f"{table_key} is at version {actual}, expected {expected}",
            hint="read again and retry",
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual

    def details(self) -> dict[str, object]:
        return {"table_key": self.table_key, "expected": self.expected, "actual": self.actual}


class PreconditionFailed(ConflictError):
    """Something a commit was prepared on has moved: head, schema, branch or lease."""

    code = "manifest.precondition_failed"
    retryable = True

    def __init__(self, member: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{member} is {actual}, expected {expected}", hint="read again, prepare again and retry"
        )
        self.member = member
        self.expected = expected
        self.actual = actual

    def details(self) -> dict[str, object]:
        return {"member": self.member, "expected": self.expected, "actual": self.actual}


class PublishContention(ConflictError):
    """Other writers won every attempt of the retry budget; nothing was written."""

    code = "manifest.contention"
    retryable = True


class AlreadyExists(ConflictError):
    """The name is taken."""

    code = "conflict.already_exists"


class BranchInUse(ConflictError):
    """The branch cannot go while something depends on it."""

    code = "conflict.branch_in_use"


class SchemaApplyLocked(ConflictError):
    """Another schema change is under way."""

    code = "conflict.schema_apply_locked"
    retryable = True


class MergeConflicts(ConflictError):
    """A merge cannot be decided row by row; carries every conflict."""

    code = "merge.conflicts"

    def __init__(self, message: str, conflicts: Sequence[dict[str, object]]) -> None:
        super().__init__(message, hint="resolve the rows on the source branch and merge again")
        self.conflicts = tuple(conflicts)

    def details(self) -> dict[str, object]:
        return {"merge_conflicts": list(self.conflicts)}


class CommitOutcomeUnknown(OmnigraphError):
    """The answer to a publish was lost. The write may have landed: never retry or clean up."""

    code = "manifest.outcome_unknown"

    def __init__(self, message: str, *, commit_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.commit_id = commit_id

    def details(self) -> dict[str, object]:
        return {"commit_id": self.commit_id}


class PolicyDenied(OmnigraphError):
    """Policy forbids the action."""

    kind = ErrorKind.FORBIDDEN
    code = "policy.denied"

    def __init__(self, actor: str, action: str, rule: str | None = None) -> None:
        super().__init__(f"policy denied `{action}` for actor `{actor}`")
        self.actor = actor
        self.action = action
        self.rule = rule

    def details(self) -> dict[str, object]:
        return {"actor": self.actor, "action": self.action, "rule": self.rule}


class Unauthenticated(OmnigraphError):
    """No or no valid credentials."""

    kind = ErrorKind.UNAUTHORIZED
    code = "auth.unauthenticated"


class ConfigError(OmnigraphError):
    """A setting, flag or configuration file is wrong."""

    kind = ErrorKind.BAD_REQUEST
    code = "config.invalid"


class FormatTooNew(OmnigraphError):
    """The graph was written by a newer release than this one can read."""

    kind = ErrorKind.BAD_REQUEST
    code = "storage.format_too_new"


class StorageError(OmnigraphError):
    """The store failed; retryable when the instance says so."""

    code = "storage.failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool = False,
        is_refused: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.is_refused = is_refused
        """The store said no, so that a write has certainly not landed."""


class ObjectNotFound(StorageError):
    """A file the catalog or a reader relies on is not in the store."""

    code = "storage.object_not_found"


class EmbeddingError(OmnigraphError):
    """The embedding provider failed; retryable when the instance says so."""

    code = "embedding.failed"

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable


class QueryStopped(OmnigraphError):
    """A query was stopped before it had its answer; nothing of it is left."""

    kind = ErrorKind.BAD_REQUEST
    code = "query.stopped"


class BudgetExceeded(QueryStopped):
    """A query needs more memory than it may use; names the clause that does."""

    code = "query.over_budget"

    def __init__(self, clause: str, needed: int, budget: int) -> None:
        super().__init__(
            f"the query needs {needed:,} bytes for `{clause}`, and may use {budget:,}",
            hint="match less there, add a limit, or raise OMNIGRAPH_QUERY_MEMORY",
        )
        self.clause = clause
        self.needed = needed
        self.budget = budget

    def details(self) -> dict[str, object]:
        return {"clause": self.clause, "needed": self.needed, "budget": self.budget}


class QueryTimeout(QueryStopped):
    """A query ran longer than it may."""

    code = "query.timeout"
    retryable = True

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the query took longer than {seconds:g} s",
            hint="match less, or give it more time (OMNIGRAPH_QUERY_TIMEOUT)",
        )
        self.seconds = seconds

    def details(self) -> dict[str, object]:
        return {"seconds": self.seconds}


class QueryCancelled(QueryStopped):
    """Whoever asked no longer wants the answer."""

    code = "query.cancelled"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


class InvariantBroken(OmnigraphError):
    """A bug in OmniGraph itself; names the invariant."""

    code = "internal.invariant"

    def __init__(self, invariant: str) -> None:
        super().__init__(f"invariant broken: {invariant}", hint="this is a bug in OmniGraph")
        self.invariant = invariant

    def details(self) -> dict[str, object]:
        return {"invariant": self.invariant}
