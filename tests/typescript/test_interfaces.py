"""The client's interfaces and functions are what `openapi.json` describes."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tests.support.cases import each
from tests.support.processes import ROOT
from tests.typescript.interfaces import (
    Member,
    Operation,
    client_operations,
    client_types,
    problems,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDED_VALUES: Final[Mapping[str, frozenset[str]]] = {
    "ErrorCode": frozenset({"too_many_requests"}),
    "MergeConflictKindOutput": frozenset({"schema_conflict"}),
}
"""What ours says beyond what clients of 0.3 know; they take any other text as it is."""

_PLAIN: Final = {"string": "string", "integer": "number", "boolean": "boolean", "null": "null"}


@cache
def described() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text())
    return document


def schemas() -> dict[str, Any]:
    found: dict[str, Any] = described()["components"]["schemas"]
    return found


def by_function(operation: Operation) -> str:
    return operation.function


def test_the_client_knows_eighteen_operations_and_thirty_one_schemas() -> None:
    assert len(client_operations()) == 18
    types = client_types()
    assert len(types.documents) + len(types.enums) == 31


@each("operation", client_operations(), ids=by_function)
def test_operation(operation: Operation) -> None:
    entry = described()["paths"][operation.url][operation.method.lower()]
    assert entry["operationId"] == operation.operation_id
    assert entry["responses"].keys() >= {"200"}
    assert not entry.get("deprecated", False)
    assert required_parameters(entry) == set(path_parameters(operation.url))
    content = entry["responses"]["200"]["content"]
    if operation.answer == "Blob":
        assert "application/x-ndjson" in content
    else:
        assert alternatives(content["application/json"]["schema"]) == {operation.answer}


@each("operation", client_operations(), ids=by_function)
def test_body(operation: Operation) -> None:
    entry = described()["paths"][operation.url][operation.method.lower()]
    body = entry.get("requestBody")
    if operation.body is None:
        assert body is None or not body.get("required", False), "the client sends none"
    else:
        assert body["required"]
        schema = body["content"]["application/json"]["schema"]
        assert alternatives(schema) == {operation.body}


@each("operation", client_operations(), ids=by_function)
def test_refusals_are_error_documents(operation: Operation) -> None:
    entry = described()["paths"][operation.url][operation.method.lower()]
    refused = {status: r for status, r in entry["responses"].items() if status >= "400"}
    for status, response in refused.items():
        schema = response["content"]["application/json"]["schema"]
        assert alternatives(schema) == {"ErrorOutput"}, status


@each("name", sorted(client_types().enums))
def test_enum(name: str) -> None:
    known = client_types().enums[name]
    assert frozenset(schemas()[name]["enum"]) == known | ADDED_VALUES.get(name, frozenset())


@each("name", sorted(client_types().documents))
def test_document(name: str) -> None:
    schema = schemas()[name]
    assert schema["type"] == "object"
    members = client_types().documents[name]
    required = {m.name for m in members if not m.is_optional}
    assert set(schema.get("required", ())) == required
    for member in members:
        assert_same_type(member, schema["properties"][member.name])


def assert_same_type(member: Member, schema: dict[str, Any]) -> None:
    found = alternatives(schema)
    if member.is_optional and "null" not in member.alternatives:
        found -= {"null"}  # may be described; that it never comes is seen in the real answers
    assert found == member.alternatives, member.name


def alternatives(schema: dict[str, Any]) -> frozenset[str]:
    """A schema in the words of `types.ts`."""
    choices = schema.get("anyOf", schema.get("oneOf"))
    if choices is not None:
        return frozenset[str]().union(*(alternatives(choice) for choice in choices))
    if "$ref" in schema:
        return _named(schema["$ref"].rpartition("/")[2])
    kinds = schema["type"]
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return frozenset(_word(kind, schema) for kind in kinds)


def _named(name: str) -> frozenset[str]:
    """A type by its name; one the client has no name for, as what it is."""
    known = client_types()
    if name in known.documents or name in known.enums:
        return frozenset({name})
    return alternatives(schemas()[name])


def _word(kind: str, schema: dict[str, Any]) -> str:
    if kind == "array":
        (inner,) = alternatives(schema["items"])
        return f"Array<{inner}>"
    return "Record<string, unknown>" if kind == "object" else _PLAIN[kind]


def path_parameters(url: str) -> list[str]:
    return [part[1:-1] for part in url.split("/") if part.startswith("{")]


def required_parameters(entry: dict[str, Any]) -> set[str]:
    return {p["name"] for p in entry.get("parameters", ()) if p.get("required", False)}


@each(
    ("value", "expected"),
    [
        ({"table_key": "node:Person", "rows_loaded": 1, "more": []}, []),
        ({"table_key": "node:Person"}, ["$.rows_loaded: missing"]),
        ({"table_key": None, "rows_loaded": 1.0}, ["table_key: None", "rows_loaded: 1.0"]),
        ([], ["not an object"]),
    ],
)
def test_what_an_answer_lacks_is_told(value: object, expected: list[str]) -> None:
    found = problems("IngestTableOutput", value)
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True))


def test_left_out_and_null_are_different() -> None:
    conflict = {"table_key": "edge:Knows", "row_id": None, "kind": "orphan_edge", "message": "m"}
    assert problems("ErrorOutput", {"error": "e", "merge_conflicts": [conflict]}) == []
    assert problems("ErrorOutput", {"error": "e", "merge_conflicts": []}) != []
    assert problems("ErrorOutput", {"error": "e", "code": None}) != []
    unfit = {**conflict, "kind": "other"}
    del unfit["row_id"]
    assert problems("ErrorOutput", {"error": "e", "merge_conflicts": [unfit]}) == [
        "$.merge_conflicts[0].row_id: missing",
        "$.merge_conflicts[0].kind: 'other' is no MergeConflictKindOutput",
    ]
