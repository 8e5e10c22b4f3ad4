"""Errors go out as one document and come in as what they were."""

from __future__ import annotations

import json
from typing import Any

from omnigraph_core import errors
from omnigraph_core.diagnostics import Source, Span, diagnose
from omnigraph_core.errors.wire import error_document, error_from
from omnigraph_core.violations import Rule, Violation
from tests.support.cases import each

PROBLEM = diagnose(Source("node A {", "a.pg"), "P1", "unexpected end", Span(7, 8), hint="close it")
VIOLATIONS = (
    Violation(Rule.RANGE, "too small", "Part", "stock", -1, "p1", "a.jsonl", 3),
    Violation(Rule.KEY, "given before", line=2, unit="statement"),
    Violation(Rule.JSON, "no JSON"),
)
COUNTS = {Rule.RANGE: 7, Rule.KEY: 1}
DATA: dict[str, Any] = {"violations": VIOLATIONS, "counts": COUNTS, "hint": "mend them"}
EXAMPLES: list[errors.OmnigraphError] = [
    errors.OmnigraphError("x"),
    *(
        kind([PROBLEM, PROBLEM], hint="look")
        for kind in (
            errors.CompileError, errors.SchemaSyntaxError, errors.SchemaError,
            errors.QuerySyntaxError, errors.QueryTypeError, errors.UnsupportedMigration,
        )
    ),
    errors.DataError("x", table="node:Part", line=3, property="sku"),
    *(
        kind("two problems", **DATA)
        for kind in (
            errors.RecordError, errors.ConstraintViolation, errors.EndpointNotFound,
            errors.DuplicateKey, errors.CursorRejected,
        )
    ),
    errors.ParameterError(["param 'a': x", "param 'b': y"], hint="both"),
    *(
        kind("nothing there", hint="look elsewhere")
        for kind in (
            errors.NotFoundError, errors.BranchNotFound, errors.CommitNotFound,
            errors.SnapshotNotFound, errors.TableNotFound, errors.TagNotFound, errors.RunNotFound,
            errors.QueryNotFound, errors.GraphNotFound, errors.BlobIsNull,
        )
    ),
    errors.ChangeFeedGap("cleaned up", resume_commit_id="c1"),
    *(
        kind("refused")
        for kind in (
            errors.ConflictError, errors.PublishContention, errors.AlreadyExists,
            errors.BranchInUse, errors.SchemaApplyLocked,
        )
    ),
    errors.VersionConflict("node:Part", None, 4),
    errors.PreconditionFailed("schema", "h1", "h2"),
    errors.MergeConflicts("merge conflicts: …", [{"table_key": "node:Part", "row_id": "p1"}]),
    errors.CommitOutcomeUnknown("lost", commit_id="c2", hint="look for it"),
    errors.PolicyDenied(
        "denied", actor="ada", action="change", branch="main", target_branch=None, rule=None
    ),
    errors.Unauthenticated("missing bearer token"),
    errors.ConfigError("bad flag", hint="use another"),
    errors.BlobElsewhere("s3://bucket/scan"),
    errors.FormatTooNew("too new"),
    errors.StorageError("down", retryable=True),
    errors.StorageError("broken"),
    errors.ObjectNotFound("no file"),
    errors.EmbeddingError("too many requests", retryable=True),
    errors.EmbeddingError("no key"),
    errors.JobFailed("task 2 failed", job="count", tasks=(1, 4), trace="line 1", retryable=True),
    errors.QueryStopped("stopped"),
    errors.BudgetExceeded("expand", 10, 5),
    errors.QueryTimeout(0.5),
    errors.QueryCancelled(),
    errors.InvariantBroken("one winner"),
]  # fmt: skip


def classes(root: type[errors.OmnigraphError]) -> set[type[errors.OmnigraphError]]:
    ours = [kind for kind in root.__subclasses__() if kind.__module__.startswith(errors.__name__)]
    return {root}.union(*(classes(child) for child in ours))


def test_every_class_has_an_example() -> None:
    assert {type(example) for example in EXAMPLES} == classes(errors.OmnigraphError)


@each("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error: errors.OmnigraphError) -> None:
    document = json.loads(json.dumps(error_document(error)))
    found = error_from(document, 400)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.args == error.args
    assert (found.message, found.hint, found.retryable) == (
        error.message, error.hint, error.retryable,
    )  # fmt: skip
    assert found.details() == error.details()
    mine, theirs = (
        {k: v for k, v in vars(item).items() if k != "diagnostics"} for item in (found, error)
    )
    mine.setdefault("retryable", found.retryable)
    theirs.setdefault("retryable", error.retryable)
    assert mine == theirs
    assert error_document(found) == document


def attributes(error: errors.OmnigraphError) -> dict[str, object]:
    """All of them, but for the lines of source that diagnostics show."""
    found = {"retryable": error.retryable, **vars(error)}
    found.pop("diagnostics", None)
    return found


def test_what_is_empty_is_left_out() -> None:
    assert error_document(errors.BranchNotFound("no branch `x`")) == {
        "error": "no branch `x`",
        "code": "not_found",
        "reason": "not_found.branch",
    }
    conflicts = error_document(errors.MergeConflicts("two", [{"row_id": "a"}]))
    assert conflicts["merge_conflicts"] == [{"row_id": "a"}]
    assert "details" not in conflicts
    assert error_document(errors.VersionConflict("t", 1, 2))["retryable"] is True


@each(
    ("document", "status", "kind"),
    [
        ({"error": "x", "code": "not_found"}, 404, errors.NotFoundError),
        ({"error": "x", "code": "conflict", "reason": "conflict.new"}, 409, errors.ConflictError),
        ({"error": "x"}, 422, errors.ConfigError),
        ({"error": "x"}, 401, errors.Unauthenticated),
        ({"error": "x", "code": "forbidden"}, 403, errors.PolicyDenied),
        ({"error": "x", "code": "too_many_requests"}, 429, errors.StorageError),
        ({"error": "x", "code": "internal"}, 500, errors.StorageError),
        ({}, 418, errors.StorageError),
    ],
)  # fmt: skip
def test_documents_that_name_no_class(
    document: dict[str, Any], status: int, kind: type[errors.OmnigraphError]
) -> None:
    found = error_from(document, status)
    assert type(found) is kind
    assert found.retryable is (status == 429)
    assert found.details() is not None
    assert found.message


@each(
    "details", [None, [], {"diagnostics": 3}, {"diagnostics": [1, {}]}, {"violations": [{}]},
                {"message": "other", "kind": "internal"}]
)  # fmt: skip
def test_details_that_make_no_sense_are_passed_over(details: object) -> None:
    for reason in ("schema.syntax", "data.record", "merge.conflicts", "query.timeout"):
        found = error_from({"error": "x", "reason": reason, "details": details}, 400)
        assert found.code == reason
        assert found.message == "x"
        assert json.dumps(found.details())
