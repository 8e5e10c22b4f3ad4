"""Physical indexes: one case per row of what declarations ask for."""

from __future__ import annotations

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.indexes import IndexKind, IndexSpec, physical_indexes
from tests.support.cases import each


def declared(text: str) -> tuple[IndexSpec, ...]:
    specs = physical_indexes(compile_schema(text).nodes["A"])
    assert specs[0] == IndexSpec(("id",), IndexKind.BTREE)
    return specs[1:]


@each(
    ("property", "kind"),
    [
        ("a: enum(x, y) @index", IndexKind.BITMAP),
        ("a: Date @index", IndexKind.BTREE),
        ("a: DateTime? @index", IndexKind.BTREE),
        ("a: U64 @index", IndexKind.BTREE),
        ("a: F32 @index", IndexKind.BTREE),
        ("a: Bool @index", IndexKind.BITMAP),
        ("a: I64 @key", IndexKind.BTREE),
        ("a: String @index", IndexKind.INVERTED),
        ("a: String @key", IndexKind.INVERTED),
        ("a: Vector(3) @index", IndexKind.VECTOR),
        ("a: String? @unique", IndexKind.BTREE),
        ("a: I32 @unique @index", IndexKind.BTREE),
        ("a: String @index(a)", IndexKind.INVERTED),
        ("a: [String] @index(a)", IndexKind.LABEL_LIST),
        ("a: [DateTime]? @index(a)", IndexKind.LABEL_LIST),
    ],
)
def test_one_column(property: str, kind: IndexKind) -> None:
    assert declared(f"node A {{ {property} }}") == (IndexSpec(("a",), kind),)


@each(
    "body",
    [
        "a: String b: I32 @index(a, b)",
        "a: String b: I32 @key(a, b)",
        "a: String b: I32 @unique(a, b)",
        "a: Blob?",
    ],
)
def test_groups_that_no_index_serves(body: str) -> None:
    assert declared(f"node A {{ {body} }}") == ()


def test_a_column_declared_twice_is_indexed_once() -> None:
    assert len(declared("node A { a: I32 @key @index @index(a) }")) == 1


def test_a_unique_text_is_indexed_for_search_and_to_be_looked_up() -> None:
    specs = declared("node A { a: String @unique @index }")
    assert [spec.kind for spec in specs] == [IndexKind.INVERTED, IndexKind.BTREE]


def test_a_unique_end_of_an_edge_has_its_index_anyway() -> None:
    catalog = compile_schema("node A {} edge B: A -> A { @unique(src) }")
    assert len(physical_indexes(catalog.edges["B"])) == 3


def test_edges_index_their_id_their_ends_and_what_is_declared() -> None:
    catalog = compile_schema("node A {} edge B: A -> A { w: F64 @index @index(src) v: I32 }")
    specs = physical_indexes(catalog.edges["B"])
    columns = ("id", "src", "dst", "w")
    assert specs == tuple(IndexSpec((name,), IndexKind.BTREE) for name in columns)
