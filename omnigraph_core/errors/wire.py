"""Errors as JSON and back: any error goes out as one document and comes in as the same class.

What was raised on one side of a connection is raised again on the other with the same message,
hint, facts and advice to retry. A document that names no class of ours still becomes an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnigraph_core import errors
from omnigraph_core.diagnostics import Diagnostic, Severity, Span
from omnigraph_core.errors.root import ErrorKind, OmnigraphError
from omnigraph_core.violations import Rule, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from enum import StrEnum

_Error = TypeVar("_Error", bound=OmnigraphError)
_Member = TypeVar("_Member", bound="StrEnum")

_CONFLICTS: Final = "merge_conflicts"
_PASSING: Final = frozenset({429, 502, 503, 504})
"""Statuses that say nothing against the request itself: it may succeed later."""


def error_document(error: OmnigraphError) -> dict[str, object]:
    """An error as every surface tells it; what is empty is left out.

    >>> error_document(errors.TagNotFound("no tag `v1`"))
    {'error': 'no tag `v1`', 'code': 'not_found', 'reason': 'not_found.tag'}
    """
    details = error.details()
    conflicts = details.pop(_CONFLICTS, None)
    document: dict[str, object] = {
        "error": error.message,
        "code": str(error.kind),
        "reason": error.code,
    }
    parts = {"hint": error.hint, "details": details, "retryable": error.retryable}
    document |= {name: value for name, value in parts.items() if value}
    if conflicts:
        document[_CONFLICTS] = conflicts
    return document


def error_from(document: Mapping[str, Any], status: int) -> OmnigraphError:
    """The error a document tells; of one that names no known class, one of its kind.

    Args:
        status: of the HTTP answer it came with.
    """
    message = str(document.get("error") or f"the server answered with status {status}")
    hint = document.get("hint")
    is_retryable = bool(document.get("retryable"))
    named = _classes().get(str(document.get("reason")))
    chosen = named or _of_kind(document.get("code"), status)
    error = _raised_elsewhere(chosen, message, None if hint is None else str(hint))
    if named is None:
        is_retryable = is_retryable or status in _PASSING
    if error.retryable != is_retryable:
        error.retryable = is_retryable
    details = document.get("details")
    facts = dict(details) if isinstance(details, dict) else {}
    facts.setdefault(_CONFLICTS, document.get(_CONFLICTS))
    _put_facts(error, facts)
    return error


def _classes() -> dict[str, type[OmnigraphError]]:
    """Every class by its code."""
    return {found.code: found for found in _below(OmnigraphError)}


def _below(root: type[OmnigraphError]) -> Iterator[type[OmnigraphError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):  # others may make errors of their own
            yield from _below(child)


def _of_kind(kind: object, status: int) -> type[OmnigraphError]:
    """The class of an answer that tells a kind or nothing but a status."""
    known = {str(item): item for item in ErrorKind}
    named = known.get(str(kind)) or _BY_STATUS.get(status, ErrorKind.INTERNAL)
    return _BY_KIND[named]


_BY_STATUS: Final = {
    400: ErrorKind.BAD_REQUEST,
    401: ErrorKind.UNAUTHORIZED,
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.NOT_FOUND,
    405: ErrorKind.BAD_REQUEST,
    409: ErrorKind.CONFLICT,
    412: ErrorKind.CONFLICT,
    413: ErrorKind.BAD_REQUEST,
    415: ErrorKind.BAD_REQUEST,
    422: ErrorKind.BAD_REQUEST,
}
_BY_KIND: Final[dict[ErrorKind, type[OmnigraphError]]] = {
    ErrorKind.UNAUTHORIZED: errors.Unauthenticated,
    ErrorKind.FORBIDDEN: errors.PolicyDenied,
    ErrorKind.BAD_REQUEST: errors.ConfigError,
    ErrorKind.NOT_FOUND: errors.NotFoundError,
    ErrorKind.CONFLICT: errors.ConflictError,
    ErrorKind.INTERNAL: errors.StorageError,
}


def _raised_elsewhere(kind: type[_Error], message: str, hint: str | None) -> _Error:
    """An error with the message it had; classes make theirs of facts, and may do so differently."""
    error = kind.__new__(kind, message)
    OmnigraphError.__init__(error, message, hint=hint)
    return error


def _put_facts(error: OmnigraphError, given: Mapping[str, Any]) -> None:
    """Give an error the attributes its class has; facts that were not told are empty."""
    for kind, facts in _FACTS.items():
        if isinstance(error, kind):
            for attribute, (name, read) in facts.items():
                setattr(error, attribute, read(given.get(name)))


def _plain(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _members(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else ()


def _objects(value: Any) -> tuple[dict[str, Any], ...]:
    return tuple(item for item in _members(value) if isinstance(item, dict))


def _diagnostics(value: Any) -> tuple[Diagnostic, ...]:
    return tuple(_diagnostic(item) for item in _objects(value))


def _diagnostic(item: Mapping[str, Any]) -> Diagnostic:
    span = item.get("span") or {}
    return Diagnostic(
        code=_text(item.get("code")),
        message=_text(item.get("message")),
        file=_text(item.get("file")),
        line=_whole(item.get("line")),
        column=_whole(item.get("column")),
        span=Span(_whole(span.get("start")), _whole(span.get("end"))),
        line_text="",  # the message of the error shows it
        hint=item.get("hint"),
        severity=_known(Severity, item.get("severity"), Severity.ERROR),
    )


_UNITS: Final = ("line", "row", "record", "statement")


def _violations(value: Any) -> tuple[Violation, ...]:
    return tuple(_violation(item) for item in _objects(value))


def _violation(item: Mapping[str, Any]) -> Violation:
    unit = next((name for name in _UNITS if name in item), _UNITS[0])
    return Violation(
        rule=_known(Rule, item.get("rule"), Rule.RECORD),
        message=_text(item.get("message")),
        type_name=item.get("type"),
        property=item.get("property"),
        value=item.get("value"),
        id=item.get("id"),
        file=item.get("file"),
        line=item.get(unit),
        unit=unit,
    )


def _counts(value: Any) -> dict[Rule, int]:
    given = value if isinstance(value, dict) else {}
    return {rule: given[str(rule)] for rule in Rule if str(rule) in given}


def _known(kind: type[_Member], text: object, otherwise: _Member) -> _Member:
    return next((member for member in kind if member == text), otherwise)


_Facts = dict[str, tuple[str, "Callable[[Any], Any]"]]


def _facts(read: Callable[[Any], Any], *names: str) -> _Facts:
    return {name: (name, read) for name in names}


_FACTS: Final[dict[type[OmnigraphError], _Facts]] = {
    errors.CompileError: {"diagnostics": ("diagnostics", _diagnostics)},
    errors.DataError: {
        **_facts(_plain, "table", "line", "property"),
        "violations": ("violations", _violations),
        "counts": ("counts", _counts),
    },
    errors.ParameterError: {"problems": ("problems", _members)},
    errors.ChangeFeedGap: _facts(_text, "resume_commit_id"),
    errors.VersionConflict: _facts(_plain, "table_key", "expected", "actual"),
    errors.PreconditionFailed: _facts(_text, "member", "expected", "actual"),
    errors.MergeConflicts: {"conflicts": (_CONFLICTS, _objects)},
    errors.CommitOutcomeUnknown: _facts(_text, "commit_id"),
    errors.PolicyDenied: {
        **_facts(_text, "actor", "action"),
        **_facts(_plain, "branch", "target_branch", "rule"),
    },
    errors.BlobElsewhere: _facts(_text, "uri"),
    errors.StorageError: {"is_refused": ("is_refused", bool)},
    errors.JobFailed: {**_facts(_text, "job", "trace"), "tasks": ("tasks", _members)},
    errors.BudgetExceeded: {**_facts(_text, "clause"), **_facts(_whole, "needed", "budget")},
    errors.QueryTimeout: {"seconds": ("seconds", lambda value: value or 0.0)},
    errors.InvariantBroken: _facts(_text, "invariant"),
}
"""The attributes of each class, by name: which detail tells it, and how that is read."""
