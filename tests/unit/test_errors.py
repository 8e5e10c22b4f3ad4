"""The error tree: drawing, kinds, details."""

from __future__ import annotations

import json

from omnigraph_core import errors
from omnigraph_core.diagnostics import Source, Span, diagnose
from tests.support.cases import each


def subclasses(root: type[errors.OmnigraphError]) -> list[type[errors.OmnigraphError]]:
    return [root, *(item for child in root.__subclasses__() for item in subclasses(child))]


def drawn() -> list[tuple[str, str]]:
    """(class, parent) pairs of the drawing in the module docstring."""
    assert errors.__doc__ is not None
    pairs, path = [], list[str]()
    for line in errors.__doc__.splitlines():
        name = line.strip("│├└─ ")
        if line.startswith("OmnigraphError") or "── " in line:
            depth = 0 if line.startswith("Omni") else line.index("── ") // 4 + 1
            path = [*path[:depth], name]
            pairs.append((name, path[depth - 1] if depth else "Exception"))
    return pairs


def test_the_drawing_is_the_tree() -> None:
    real = [(cls.__name__, cls.__base__.__name__) for cls in subclasses(errors.OmnigraphError)]
    assert drawn() == real


def test_every_class_has_its_own_code() -> None:
    codes = [cls.__dict__.get("code") for cls in subclasses(errors.OmnigraphError)]
    assert None not in codes
    assert len(codes) == len(set(codes))


def test_kinds_are_the_wire_codes() -> None:
    wire = {"unauthorized", "forbidden", "bad_request", "not_found", "conflict", "internal"}
    assert {str(kind) for kind in errors.ErrorKind} == wire
    assert {cls.kind for cls in subclasses(errors.OmnigraphError)} == set(errors.ErrorKind)


EXAMPLES: list[tuple[errors.OmnigraphError, dict[str, object]]] = [
    (errors.OmnigraphError("x"), {}),
    (
        errors.DataError("x", table="node:Part", line=3, property="sku"),
        {"table": "node:Part", "line": 3, "property": "sku"},
    ),
    (errors.ParameterError(["param 'a': x"]), {"problems": ["param 'a': x"]}),
    (
        errors.VersionConflict("node:Part", 3, 4),
        {"table_key": "node:Part", "expected": 3, "actual": 4},
    ),
    (errors.ChangeFeedGap("x", resume_commit_id="c"), {"resume_commit_id": "c"}),
    (errors.MergeConflicts("x", [{"row": "a"}]), {"merge_conflicts": [{"row": "a"}]}),
    (
        errors.PolicyDenied("x", actor="agent", action="change", branch="main"),
        {
            "actor": "agent",
            "action": "change",
            "branch": "main",
            "target_branch": None,
            "rule": None,
        },
    ),
    (
        errors.JobFailed("x", job="count", tasks=(1, 4), trace="line 1"),
        {"job": "count", "tasks": [1, 4], "trace": "line 1"},
    ),
    (errors.InvariantBroken("one winner"), {"invariant": "one winner"}),
]


@each(("error", "details"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_details_are_json(error: errors.OmnigraphError, details: dict[str, object]) -> None:
    assert json.loads(json.dumps(error.details())) == details


def test_retryable_is_a_class_fact_or_an_instance_fact() -> None:
    assert errors.VersionConflict("node:Part", 1, 2).retryable
    assert not errors.AlreadyExists("x").retryable
    assert errors.StorageError("x", retryable=True).retryable
    assert not errors.EmbeddingError("x").retryable


def test_the_hint_follows_the_message() -> None:
    assert str(errors.ConfigError("bad flag", hint="use --schema")) == (
        "bad flag\nhint: use --schema"
    )
    assert str(errors.ConfigError("bad flag")) == "bad flag"


def test_a_compile_error_shows_every_problem() -> None:
    source = Source("one two", "x.pg")
    problems = [
        diagnose(source, "P1", "first", Span(0, 3)),
        diagnose(source, "P2", "second", Span(4, 7)),
    ]
    error = errors.SchemaError(problems)
    assert "first" in error.message
    assert "second" in error.message
    assert [d["code"] for d in error.details()["diagnostics"]] == ["P1", "P2"]  # type: ignore[attr-defined]
