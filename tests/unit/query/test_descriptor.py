"""Result columns as clients see them, and the Arrow schema made from the same description."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.query.check import check_query
from omnigraph_core.query.checked import CheckedColumn, CheckedRead
from omnigraph_core.query.descriptor import ResultColumn, ValueKind, describe_columns
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.result_schema import object_properties, result_schema
from omnigraph_core.query.typed import NowValue
from omnigraph_core.schema.build import compile_schema

CATALOG = compile_schema("""
node Device {
    serial: String @key
    level: enum(low, high)
    on: Bool?
    small: I32
    usmall: U32
    big: I64
    ubig: U64?
    single: F32
    double: F64
    made: Date
    seen: DateTime?
    tags: [String]?
    marks: [I64]
    vec: Vector(3)
    photo: Blob?
}
edge Feeds: Device -> Device { load: F64? }
""")


def read(returned: str, match: str = "$d: Device") -> CheckedRead:
    text = f"query q($p: [I32]?) {{ match {{ {match} }} return {{ {returned} }} }}"
    body = check_query(parse_queries(text).queries[0], CATALOG, Source(text)).body
    assert isinstance(body, CheckedRead)
    return body


def described(returned: str, match: str = "$d: Device") -> tuple[ResultColumn, ...]:
    return describe_columns(read(returned, match))


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("$d.serial", {"name": "d.serial", "kind": "string", "nullable": False}),
        ("$d.id", {"name": "d.id", "kind": "string", "nullable": False}),
        ("$d.level as l", {"name": "l", "kind": "string", "nullable": False}),
        ("$d.on", {"name": "d.on", "kind": "bool", "nullable": True}),
        ("$d.small", {"name": "d.small", "kind": "int", "nullable": False}),
        ("$d.usmall", {"name": "d.usmall", "kind": "int", "nullable": False}),
        ("$d.big", {"name": "d.big", "kind": "bigint", "nullable": False}),
        ("$d.ubig", {"name": "d.ubig", "kind": "bigint", "nullable": True}),
        ("$d.single", {"name": "d.single", "kind": "float", "nullable": False}),
        ("$d.double", {"name": "d.double", "kind": "float", "nullable": False}),
        ("$d.made", {"name": "d.made", "kind": "date", "nullable": False}),
        ("$d.seen", {"name": "d.seen", "kind": "datetime", "nullable": True}),
        (
            "$d.tags",
            {"name": "d.tags", "kind": "list", "item_kind": "string", "nullable": True},
        ),
        (
            "$d.marks",
            {"name": "d.marks", "kind": "list", "item_kind": "bigint", "nullable": False},
        ),
        ("$d.vec", {"name": "d.vec", "kind": "vector", "vector_dim": 3, "nullable": False}),
        ("$d", {"name": "d", "kind": "object", "nullable": False}),
        ("$p", {"name": "p", "kind": "list", "item_kind": "int", "nullable": True}),
        ("now()", {"name": "now", "kind": "datetime", "nullable": False}),
        ("count($d)", {"name": "count", "kind": "bigint", "nullable": False}),
        ("sum($d.small) as s", {"name": "s", "kind": "bigint", "nullable": True}),
        ("avg($d.small)", {"name": "avg", "kind": "float", "nullable": True}),
        ("max($d.small)", {"name": "max", "kind": "int", "nullable": True}),
        ('search($d.serial, "a")', {"name": "search", "kind": "bool", "nullable": False}),
        ('bm25($d.serial, "a")', {"name": "bm25", "kind": "float", "nullable": True}),
    ],
)
def test_columns(returned: str, expected: dict[str, object]) -> None:
    (column,) = described(returned)
    assert column.to_json() == expected
    assert list(column.to_json()) == list(expected)


def test_optional_variables_make_nullable_columns() -> None:
    found = described("$e, $e.serial, $w.load", "$d: Device optional { $d $w:feeds $e }")
    assert [(column.name, column.is_nullable) for column in found] == [
        ("e", True),
        ("e.serial", True),
        ("w.load", True),
    ]


def test_arrow_schema_follows_the_description() -> None:
    columns = described("$d.small, $d.tags, $d.vec, $d, $p", "$d: Device")
    schema = result_schema(columns, CATALOG)
    assert schema.names == [column.name for column in columns]
    assert [field.nullable for field in schema] == [column.is_nullable for column in columns]
    assert schema.field("d.small").type == pa.int32()
    assert schema.field("d.vec").type.list_size == 3
    shown = schema.field("d").type
    assert [shown.field(i).name for i in range(shown.num_fields)] == [
        "id",
        *object_properties(CATALOG.nodes["Device"]),
    ]


def test_objects_leave_out_blobs_and_vectors() -> None:
    shown = object_properties(CATALOG.nodes["Device"])
    assert "vec" not in shown
    assert "photo" not in shown
    assert shown[0] == "serial"


def test_a_column_has_a_type_or_holds_a_node() -> None:
    neither = replace(read("$d"), columns=(CheckedColumn("x", NowValue(), None),))
    with pytest.raises(InvariantBroken, match="has a type or holds a node"):
        describe_columns(neither)
    with pytest.raises(InvariantBroken, match="has a type or holds a node"):
        result_schema((ResultColumn("x", ValueKind.OBJECT, is_nullable=True),), CATALOG)
