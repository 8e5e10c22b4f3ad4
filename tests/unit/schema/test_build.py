"""Building: what the catalog holds and which error is raised. The rules are in the corpus."""

from __future__ import annotations

import pytest

from omnigraph_core.diagnostics import Name, Source
from omnigraph_core.errors import SchemaError, SchemaSyntaxError
from omnigraph_core.schema import ast
from omnigraph_core.schema.build import build_catalog, compile_schema
from omnigraph_core.schema.catalog import Catalog, Embedding
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.types import STRING

TEXT = """
interface Titled { slug: String @key  title: String @index }
node Page implements Titled {
  text: String
  scan: Blob?
  vector: Vector(4) @embed("text", model="small") @index
  @index(title, text)
}
edge LinksTo: Page -> Page { label: String? @unique(src, dst) }
"""


def test_a_node_type() -> None:
    page = compile_schema(TEXT).nodes["Page"]
    assert list(page.properties) == ["text", "scan", "vector", "slug", "title"]
    assert page.key == ("slug",)
    assert page.key_property == "slug"
    assert page.indexes == (("slug",), ("vector",), ("title",), ("title", "text"))
    assert page.embeddings == {"vector": Embedding("text", "small")}
    assert page.blob_properties == {"scan"}
    assert page.table_key == "node:Page"


def test_the_order_of_key_columns_is_kept() -> None:
    node = compile_schema("node A { a: String b: String @key(b, a) }").nodes["A"]
    assert node.key == ("b", "a")
    assert node.key_property == "b"


def test_where_a_property_comes_from() -> None:
    page = compile_schema(TEXT).nodes["Page"]
    assert page.properties["text"].is_direct
    assert not page.properties["slug"].is_direct
    assert page.properties["slug"].satisfies == ("Titled",)


def test_constraints_of_a_property_are_no_annotations() -> None:
    page = compile_schema(TEXT).nodes["Page"]
    assert [str(item.name) for item in page.properties["vector"].annotations] == ["embed"]


def test_an_edge_type_is_found_in_any_case() -> None:
    catalog = compile_schema(TEXT)
    edge = catalog.try_edge("LINKSto")
    assert edge is catalog.edges["LinksTo"]
    assert edge is not None
    assert (edge.source, edge.target) == ("Page", "Page")
    assert (edge.cardinality.minimum, edge.cardinality.maximum) == (0, None)
    assert edge.unique == (("src", "dst"),)
    assert catalog.try_edge("links_to") is None


def test_names_in_the_catalog_are_plain_text() -> None:
    page = compile_schema(TEXT).nodes["Page"]
    names = [page.name, *page.properties, *page.implements, *(page.key or ())]
    assert {type(name) for name in names} == {str}


def test_an_empty_schema_is_an_empty_catalog() -> None:
    assert compile_schema("") == Catalog(interfaces={}, nodes={}, edges={}, edge_names={})


def test_problems_of_meaning_are_a_schema_error() -> None:
    text = "node A { a: String @key(b) }"
    with pytest.raises(SchemaError) as caught:
        build_catalog(parse_schema(text), Source(text, "a.pg"))
    assert [(item.file, item.column) for item in caught.value.diagnostics] == [("a.pg", 25)]


def test_problems_are_told_without_the_source() -> None:
    with pytest.raises(SchemaError, match="unknown property `b` on `A`"):
        build_catalog(parse_schema("node A { a: String @key(b) }"))


def test_a_text_with_both_kinds_of_problem_is_a_syntax_error_that_tells_both() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        compile_schema("node A { a: Int @key(b) }")
    assert [item.code for item in caught.value.diagnostics] == ["P1", "P15"]


def test_an_unknown_type_causes_no_further_problem() -> None:
    text = """
    interface I { a: Int @key @default(1) }
    node A implements I { a: Text b: Wrong @embed("a") c: Int @unique @range(c, 0..1) @key(b) }
    """
    with pytest.raises(SchemaSyntaxError) as caught:
        compile_schema(text)
    assert [item.message for item in caught.value.diagnostics] == [
        "unknown type `Int`",
        "unknown type `Text`",
        "unknown type `Wrong`",
        "unknown type `Int`",
    ]


def test_building_a_parsed_schema_equals_compiling_its_text() -> None:
    assert build_catalog(parse_schema(TEXT)) == compile_schema(TEXT)


def test_a_value_on_a_property_constraint_is_refused_in_a_tree_made_by_hand() -> None:
    key = ast.Annotation(Name("key"), ast.Argument(ast.ArgumentKind.INT, "1"))
    node = ast.Node(Name("A"), properties=(ast.Property(Name("a"), STRING, (key,)),))
    with pytest.raises(SchemaError) as caught:
        build_catalog(ast.Schema((node,)))
    assert [item.code for item in caught.value.diagnostics] == ["P11"]
