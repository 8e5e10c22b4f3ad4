"""Defaults as values: exact types, exact limits."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.defaults import read_default
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.values import Value, ValueProblem
from tests.support.cases import each


@each(
    ("property", "value"),
    [
        ('String @default("")', ""),
        ("Bool @default(false)", False),
        ("I64 @default(-9223372036854775808)", -(2**63)),
        ("U64 @default(18446744073709551615)", 2**64 - 1),
        ("I32 @default(0000000000000000000000000000007)", 7),
        ("F64 @default(2)", 2.0),
        ("F32 @default(0.25)", 0.25),
        ('Date @default("2024-02-29")', dt.date(2024, 2, 29)),
        ('DateTime @default("2024-02-29")', dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        ("enum(a, b)? @default(b)", "b"),
        ("[I32] @default([])", ()),
        ("[F64]? @default([1, 2.5])", (1.0, 2.5)),
        ("I32", None),
    ],
)
def test_value(property: str, value: Value) -> None:
    found = compile_schema(f"node A {{ a: {property} }}").nodes["A"].properties["a"]
    assert found.default == value
    assert type(found.default) is type(value)
    assert found.has_default == (value is not None)


def test_a_float_default_of_whole_number_is_a_float() -> None:
    found = compile_schema("node A { a: [F32] @default([1]) }").nodes["A"].properties["a"]
    assert isinstance(found.default, tuple)
    assert [type(item) for item in found.default] == [float]


@each(
    "property",
    ["Blob @default(x)", "Vector(1) @default([1])", 'I32 @default("1")', "String @default(1)"],
)
def test_what_does_not_fit_is_a_value_problem(property: str) -> None:
    (node,) = parse_schema(f"node A {{ a: {property} }}").declarations
    item = node.properties[0]
    argument = item.annotations[0].value
    assert argument is not None
    with pytest.raises(ValueProblem):
        read_default(argument, item.type)
