"""schema.reshape: where each column of a later table comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.reshape import ColumnSource, can_hold, is_same_shape, reshape
from omnigraph_core.types import PropType, Scalar
from tests.support.cases import each

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import EdgeType, NodeType


def node(body: str) -> NodeType:
    return compile_schema(f"node Part {{ {body} }}").nodes["Part"]


def edge(body: str) -> EdgeType:
    return compile_schema(f"node Part {{}} edge Fits: Part -> Part {{ {body} }}").edges["Fits"]


def same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def test_every_column_of_the_later_table_has_a_source_in_its_order() -> None:
    before = node("sku: String  photo: Blob?")
    after = node('photo: Blob?  text: String?  sku: String  v: Vector(2)? @embed("text")')
    found = reshape(before, after, same("sku", "photo"))
    assert list(found) == table_schema(after).names
    assert list(found) == ["id", "photo", "photo#uri", "text", "sku", "v", "v#origin"]


def test_what_continues_comes_from_its_earlier_column() -> None:
    found = reshape(node("width: I32"), node("breadth: I32"), {"width": "breadth"})
    assert found == {"id": ColumnSource("id"), "breadth": ColumnSource("width")}


def test_the_ends_of_an_edge_are_kept() -> None:
    found = reshape(edge("since: Date?"), edge(""), {})
    assert found == {name: ColumnSource(name) for name in ("id", "src", "dst")}


@each(
    ("earlier", "later"),
    [("I32", "I64"), ("U32", "U64"), ("U32", "I64"), ("F32", "F64"), ("[I32]", "[I64]?")],
)
def test_a_wider_type_is_a_cast(earlier: str, later: str) -> None:
    found = reshape(node(f"n: {earlier}"), node(f"n: {later}"), same("n"))
    assert found["n"] == ColumnSource("n", is_cast=True)


@each(
    ("earlier", "later"),
    [("String", "enum(a, b)"), ("enum(a)", "String?"), ("enum(a)", "enum(b)"), ("I32", "I32?")],
)
def test_the_same_storage_type_is_no_cast(earlier: str, later: str) -> None:
    found = reshape(node(f"n: {earlier}"), node(f"n: {later}"), same("n"))
    assert found["n"] == ColumnSource("n")


@each(
    ("earlier", "later"),
    [("I64", "I32"), ("String", "I32"), ("Vector(2)", "Vector(3)"), ("I32", "[I32]?")],
)
def test_values_that_do_not_fit_are_left_behind(earlier: str, later: str) -> None:
    found = reshape(node(f"n: {earlier}"), node(f"n: {later}"), same("n"))
    assert found["n"] == ColumnSource(None)
    assert not is_same_shape(node(f"n: {earlier}"), node(f"n: {later}"), same("n"))


def test_a_new_property_is_null_unless_it_is_required() -> None:
    after = node("a: I32?  b: I32? @default(1)  c: F64 @default(2)  d: [I32] @default([1, 2])")
    found = reshape(node(""), after, {})
    assert found["a"] == found["b"] == ColumnSource(None)
    assert found["c"] == ColumnSource(None, 2.0)
    assert found["d"] == ColumnSource(None, (1, 2))


def test_nulls_are_filled_where_a_value_became_required() -> None:
    before = node("a: I32?  b: I32?  c: I32  d: I32?")
    after = node("a: I64 @default(7)  b: I32  c: I32 @default(7)  d: I32? @default(7)")
    found = reshape(before, after, same("a", "b", "c", "d"))
    assert found["a"] == ColumnSource("a", 7, is_cast=True)
    assert found["b"] == ColumnSource("b")
    assert found["c"] == ColumnSource("c")
    assert found["d"] == ColumnSource("d")


def test_companions_go_with_their_property() -> None:
    before = node('photo: Blob?  text: String  v: Vector(2)? @embed("text")')
    after = node('text: String  image: Blob?  w: Vector(2) @embed("text")  other: Blob?')
    found = reshape(before, after, {"photo": "image", "text": "text", "v": "w"})
    assert found["image#uri"] == ColumnSource("photo#uri")
    assert found["w#origin"] == ColumnSource("v#origin")
    assert found["other"] == found["other#uri"] == ColumnSource(None)


def test_a_vector_starts_and_stops_being_embedded() -> None:
    plain = node("text: String  v: Vector(2)?")
    embedded = node('text: String  v: Vector(2)? @embed("text")')
    found = reshape(plain, embedded, same("text", "v"))
    assert (found["v"], found["v#origin"]) == (ColumnSource("v"), ColumnSource(None))
    assert "v#origin" not in reshape(embedded, plain, same("text", "v"))
    assert not is_same_shape(plain, embedded, same("text", "v"))
    assert not is_same_shape(embedded, plain, same("text", "v"))


def test_a_name_that_went_to_something_new_is_not_the_earlier_column() -> None:
    found = reshape(node("a: I32"), node("b: I32  a: I32?"), {"a": "b"})
    assert (found["a"], found["b"]) == (ColumnSource(None), ColumnSource("a"))
    assert not is_same_shape(node("a: I32?"), node("a: I32?"), {})


@each(
    ("before", "after", "expected"),
    [
        ("a: I32  b: String", "b: String @unique  a: I32 @default(3)", True),
        ("a: enum(x)  b: String", "a: enum(x, y)  b: String", True),
        ("a: I32  b: String", "a: I32?  b: String", False),
        ("a: I32  b: String", "a: I64  b: String", False),
        ("a: I32  b: String", "a: I32", False),
    ],
)
def test_the_same_shape(before: str, after: str, *, expected: bool) -> None:
    assert is_same_shape(node(before), node(after), same("a", "b")) == expected


def test_an_enum_holds_texts_and_a_list_no_single_value() -> None:
    text = PropType(Scalar.STRING)
    assert can_hold(PropType(Scalar.STRING, enum_values=("a",)), text)
    assert not can_hold(PropType(Scalar.STRING, is_list=True), text)
