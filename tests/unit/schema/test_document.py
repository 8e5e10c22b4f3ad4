"""The persisted schema document: identities, JSON, hashes, and the catalog it opens as."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import ConfigError, FormatTooNew, InvariantBroken
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import (
    ConstraintKind,
    SchemaDocument,
    build_document,
    catalog_from_document,
    document_from_json,
    document_to_json,
    render_document,
    schema_hash,
    shape_hash,
)
from tests.docs.snippets import ROOT, snippets
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = """
interface Named { title: String @index  note: String? }
interface Dated { since: Date? @default("2026-01-31") }
node Topic @description("What it is about") { code: U32 @key }
node Article implements Named, Dated @owner("core", team="docs") {
  slug: String
  lang: String
  rank: F64? @default(1)
  tags: [String] @default(["a", "b"])
  state: enum(draft, live) @default(draft)
  vector: Vector(3)? @embed("slug", model="small")
  @key(slug, lang)
  @unique(title, lang)
  @range(rank, 0..9.5)
  @check(lang, "^[a-z]+$")
}
edge About: Article -> Topic @card(1..3) { weight: F32? @unique(src, dst) @index(weight) }
"""


def document(text: str, accepted: SchemaDocument | None = None) -> SchemaDocument:
    domain = "01ARZ3NDEKTSV4RRFFQ69G5FAV" if accepted is None else None
    return build_document(compile_schema(text), accepted=accepted, domain=domain)


def ids(doc: SchemaDocument) -> dict[str, int]:
    """Every identity by a readable name."""
    found = {}
    for item in doc.types:
        found[item.name] = item.type_id
        found[f"{item.name} table"] = getattr(item, "table_incarnation_id", 0)
        found.update({f"{item.name}.{prop.name}": prop.prop_id for prop in item.properties})
    return found


def test_first_ids_are_dealt_in_name_order() -> None:
    doc = document(
        "edge E: B -> A { w: I32? }\nnode B { z: I32 y: I32 }\nnode A {}\ninterface I {}"
    )
    assert ids(doc) == {
        "I": 1, "I table": 0,
        "A": 2, "A table": 3,
        "B": 4, "B table": 5, "B.y": 6, "B.z": 7,
        "E": 8, "E table": 9, "E.w": 10,
    }  # fmt: skip
    assert doc.next_identity_id == 11


def test_layout_does_not_change_ids() -> None:
    one = document("node B { z: I32 y: I32 }\nnode A {}")
    two = document("node A {}\nnode B { y: I32 z: I32 }")
    assert ids(one) == ids(two)


def test_equal_inputs_give_equal_documents() -> None:
    first = document(SOURCE)
    assert document(SOURCE) == first
    edited = SOURCE.replace("note: String?", "remark: String?")
    assert document(edited, first) == document(edited, first)


def test_a_fresh_graph_gets_its_own_domain() -> None:
    catalog = compile_schema(SOURCE)
    one, two = build_document(catalog, accepted=None), build_document(catalog, accepted=None)
    assert one.schema_identity_domain != two.schema_identity_domain
    assert len(one.schema_identity_domain) == 26


def test_the_domain_of_a_graph_never_changes() -> None:
    first = document(SOURCE)
    catalog = compile_schema(SOURCE)
    assert build_document(catalog, accepted=first, domain=first.schema_identity_domain) == first
    with pytest.raises(InvariantBroken, match="identity domain"):
        build_document(catalog, accepted=first, domain="another")


def test_ids_survive_renames() -> None:
    before = document("node A { x: I32 y: I32 }\nedge E: A -> A")
    after = document(
        'node B @rename_from("A") { z: I32 @rename_from("x")  y: I32 }\n'
        'edge F: B -> B @rename_from("E")',
        before,
    )
    old, new = ids(before), ids(after)
    pairs = {"B": "A", "B table": "A table", "B.z": "A.x", "B.y": "A.y", "F": "E"}
    assert {name: new[name] for name in pairs} == {name: old[was] for name, was in pairs.items()}
    assert after.next_identity_id == before.next_identity_id
    assert after.edges[0].from_type.name == "B"
    assert after.edges[0].from_type.id == old["A"]


def test_what_is_added_gets_fresh_ids() -> None:
    before = document("node A { x: I32 }")
    after = document("node A { x: I32 w: I32? }\nnode Z {}", before)
    assert ids(after)["A.x"] == ids(before)["A.x"]
    assert ids(after)["A.w"] == before.next_identity_id
    assert ids(after)["Z"] == before.next_identity_id + 1


def test_a_name_that_comes_back_is_a_new_thing() -> None:
    first = document("node A { x: I32 }\nnode B {}")
    second = document("node B {}", first)
    third = document("node A { x: I32 }\nnode B {}", second)
    assert second.next_identity_id == first.next_identity_id
    assert {ids(third)[name] for name in ("A", "A table", "A.x")}.isdisjoint(ids(first).values())
    assert ids(third)["B table"] == ids(first)["B table"]


@each(
    "desired",
    [
        'node A @rename_from("B") { x: I32 }\nnode B @rename_from("A") { x: I32 }',
        'node B @rename_from("A") { x: I32 }\nnode C @rename_from("B") { x: I32 }',
        'node C @rename_from("A") { x: I32 }\nnode D @rename_from("A") { x: I32 }',
        'node C @rename_from("Nothing") { x: I32 }',
    ],
)
def test_a_refused_rename_moves_no_id(desired: str) -> None:
    before = document("node A { x: I32 }\nnode B { x: I32 }")
    after = document(desired, before)
    for name, identity in ids(after).items():
        assert identity >= before.next_identity_id or ids(before)[name] == identity


def test_properties_are_sorted_and_remember_their_place() -> None:
    node = next(item for item in document(SOURCE).nodes if item.name == "Article")
    names = [prop.name for prop in node.properties]
    assert names == sorted(names)
    written = [prop.name for prop in sorted(node.properties, key=lambda prop: prop.position)]
    assert written == [
        "slug", "lang", "rank", "tags", "state", "vector", "title", "note", "since",
    ]  # fmt: skip


def test_references_carry_id_and_name() -> None:
    doc = document(SOURCE)
    article = next(item for item in doc.nodes if item.name == "Article")
    props = {prop.name: prop for prop in article.properties}
    key = article.constraints[0]
    assert key.kind is ConstraintKind.KEY
    assert [(ref.id, ref.name) for ref in key.columns] == [
        (props["slug"].prop_id, "slug"),
        (props["lang"].prop_id, "lang"),
    ]
    source = props["vector"].embed_source
    assert source is not None
    assert (source.id, source.name) == (props["slug"].prop_id, "slug")
    assert props["vector"].embed_model == "small"
    assert [ref.name for ref in article.implements] == ["Named", "Dated"]
    assert [ref.name for ref in doc.edges[0].constraints[0].columns] == ["src", "dst"]
    assert [ref.id for ref in doc.edges[0].constraints[0].columns] == [None, None]


def test_inherited_properties_say_what_they_satisfy() -> None:
    doc = document(SOURCE)
    named = next(item for item in doc.interfaces if item.name == "Named")
    article = next(item for item in doc.nodes if item.name == "Article")
    title = next(prop for prop in article.properties if prop.name == "title")
    assert not title.declared_directly
    assert title.property_constraints == (ConstraintKind.INDEX,)
    (found,) = title.satisfies_interface_properties
    assert found.interface.id == named.type_id
    assert found.property_id == next(p.prop_id for p in named.properties if p.name == "title")


def test_the_catalog_comes_back() -> None:
    catalog = compile_schema(SOURCE)
    again = catalog_from_document(document(SOURCE))
    assert again == catalog
    assert list(again.nodes) == list(catalog.nodes) == ["Topic", "Article"]
    assert list(again.interfaces) == ["Named", "Dated"]
    for name, node in catalog.nodes.items():
        assert list(again.nodes[name].properties) == list(node.properties)


def test_json_round_trip_is_exact() -> None:
    doc = document(SOURCE)
    value = json.loads(render_document(doc))
    assert value == document_to_json(doc)
    again = document_from_json(value)
    assert again == doc
    assert render_document(again) == render_document(doc)


def test_rendered_form() -> None:
    text = render_document(document("node A { size: I32? }"))
    assert text.startswith('{\n  "ir_version": 2,\n  "schema_identity_domain": "01ARZ3')
    assert text.endswith("}\n")


def test_the_documented_example_is_a_document() -> None:
    page = ROOT / "docs" / "internals" / "schema-document.md"
    (shown,) = [block.text for block in snippets(page) if block.language == "json"]
    source = "node Article @owner(docs) { slug: String @key }\n"
    source += "edge Cites: Article -> Article { @unique(src, dst) }"
    assert document_from_json(json.loads(shown)) == document(source)


def test_a_newer_format_is_refused_before_it_is_read() -> None:
    with pytest.raises(FormatTooNew, match="ir_version 3, this release reads 2"):
        document_from_json({"ir_version": 3, "whatever": []})


def _damage(path: tuple[str | int, ...], value: object) -> Callable[[Any], None]:
    def apply(root: Any) -> None:
        for key in path[:-1]:
            root = root[key]
        if value is _GONE:
            del root[path[-1]]
        else:
            root[path[-1]] = value

    return apply


_GONE = object()
_ARTICLE = ("nodes", 0)

DAMAGED = [
    ((), "not an object", "schema document.ir_version: expected a whole number, found None"),
    (("ir_version",), 1, "schema document.ir_version: expected 2, found 1"),
    (("ir_version",), True, "ir_version: expected a whole number, found True"),
    (("nodes",), {}, "schema document.nodes: expected an array, found {}"),
    (("edges",), _GONE, "schema document: missing field `edges`"),
    (("extra",), 1, "schema document: unknown field `extra`"),
    ((*_ARTICLE, "name"), 3, "nodes[0].name: expected text, found 3"),
    ((*_ARTICLE, "position"), -1, "nodes[0].position: expected a whole number, found -1"),
    ((*_ARTICLE, "constraints", 0), {}, "constraints[0]: expected an object with one field"),
    ((*_ARTICLE, "constraints", 0), {"Near": []}, "expected Key | Unique | Index | Range | Check"),
    ((*_ARTICLE, "constraints", 0), 7, "constraints[0]: expected an object, found 7"),
    ((*_ARTICLE, "properties", 0, "prop_type", "scalar"), "Text", "scalar: expected String | "),
    ((*_ARTICLE, "properties", 0, "prop_type", "scalar"), "Vector", "a vector needs its dimension"),
    ((*_ARTICLE, "properties", 0, "prop_type", "list"), 1, "list: expected true or false"),
    ((*_ARTICLE, "properties", 2, "default"), "x", "default: expected a number, found text 'x'"),
    ((*_ARTICLE, "type_id"), 999, "id 999 is not below next_identity_id"),
    ((*_ARTICLE, "type_id"), 1, "id 1 is used 2 times"),
    ((*_ARTICLE, "name"), "Topic", "node `Topic` appears 2 times"),
    ((*_ARTICLE, "implements", 0, "id"), 25, "Article refers to `Named` (id 25), which is not"),
    (("edges", 0, "to_type", "name"), "Tpoic", "About refers to `Tpoic`"),
    (("edges", 0, "constraints", 0, "Unique", 0, "name"), "sorc", "About refers to `sorc`"),
    ((*_ARTICLE, "constraints", 0, "Key"), [], "Article has a constraint without columns"),
    (("edges", 0, "constraints", 1), {"Key": []}, "edge About cannot have a Key"),
    (("edges", 0, "cardinality", "max"), "many", "cardinality.max: expected a whole number"),
]


@each(("path", "value", "problem"), DAMAGED, ids=[row[2] for row in DAMAGED])
def test_damage_is_refused_with_its_place(
    path: tuple[str | int, ...], value: object, problem: str
) -> None:
    root: Any = copy.deepcopy(document_to_json(document(SOURCE)))
    if path:
        _damage(path, value)(root)
    else:
        root = value
    with pytest.raises(ConfigError) as caught:
        document_from_json(root)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("bound", "problem"),
    [
        ({"Integer": 0.5}, "min.Integer: expected an integer, found 0.5"),
        ({"Float": "1"}, "min.Float: expected a number, found '1'"),
        ({"Decimal": 1}, "min: expected Integer | Float, found 'Decimal'"),
    ],
)
def test_a_bad_bound_is_refused(bound: object, problem: str) -> None:
    root: Any = document_to_json(document("node A { x: F64 @range(x, 0..1) }"))
    root["nodes"][0]["constraints"][0]["Range"]["min"] = bound
    with pytest.raises(ConfigError) as caught:
        document_from_json(root)
    assert problem in str(caught.value)


def test_every_contradiction_is_listed() -> None:
    root: Any = document_to_json(document(SOURCE))
    root["edges"][0]["to_type"]["name"] = "Nowhere"
    root["nodes"][0]["implements"][1]["name"] = "Nothing"
    with pytest.raises(ConfigError) as caught:
        document_from_json(root)
    assert "Nowhere" in str(caught.value)
    assert "Nothing" in str(caught.value)


def test_two_keys_are_a_contradiction() -> None:
    root: Any = document_to_json(document(SOURCE))
    root["nodes"][0]["constraints"].append(root["nodes"][0]["constraints"][0])
    with pytest.raises(ConfigError, match="Article has more than one key"):
        document_from_json(root)


def test_a_satisfied_property_is_there() -> None:
    root: Any = document_to_json(document("interface I { a: I32 }\nnode A implements I {}"))
    root["nodes"][0]["properties"][0]["satisfies_interface_properties"][0]["property_id"] = 3
    with pytest.raises(ConfigError, match=r"A\.a satisfies property id 3 of `I`, which is not"):
        document_from_json(root)


def test_a_whole_number_given_to_a_float_is_stored_as_one() -> None:
    catalog = compile_schema("node A { x: F64? @default(1) }")
    node = catalog.nodes["A"]
    prop = replace(node.properties["x"], default=1)
    by_hand = replace(catalog, nodes={"A": replace(node, properties={"x": prop})})
    assert shape_hash(by_hand) == shape_hash(catalog)
    assert render_document(build_document(by_hand, accepted=None, domain="d")) == render_document(
        build_document(catalog, accepted=None, domain="d")
    )


def test_schema_hash_covers_identities() -> None:
    first = document("node A { x: I32 }")
    again = document("node A { x: I32 }", document("", first))
    assert schema_hash(first).startswith("sha256:")
    assert len(schema_hash(first)) == 71
    assert schema_hash(document_from_json(document_to_json(first))) == schema_hash(first)
    assert schema_hash(again) != schema_hash(first)
    assert shape_hash(again) == shape_hash(first)


@pytest.mark.parametrize(
    "same",
    [
        "node B {} node A { y: I32? x: F64? @default(1) @owner(core) @unique(x, y) }",
        'node A @rename_from("Z") { x: F64? @owner("core") @default(1.0) y: I32? @unique(y, x) } '
        "node B {}",
    ],
)
def test_shape_ignores_layout_spelling_and_hints(same: str) -> None:
    text = "node A { x: F64? @default(1) @owner(core) y: I32? @unique(x, y) } node B {}"
    assert shape_hash(compile_schema(same)) == shape_hash(compile_schema(text))
    assert shape_hash(document(same)) == shape_hash(compile_schema(text))


@each(
    "other",
    [
        "node A { x: F64? @default(2) @owner(core) }",
        "node A { x: F64? @default(1) @owner(shell) }",
        "node A { x: F32? @default(1) @owner(core) }",
        "node A { x: F64? @default(1) @owner(core) @range(x, 0..) }",
        "node A { x: F64? @default(1) @owner(core) @index }",
        "node A { x: F64? @default(1) @owner(core) } interface I {}",
        "node A { x: F64? @default(1) @owner(core) } edge E: A -> A",
        "node A @note { x: F64? @default(1) @owner(core) }",
    ],
)
def test_shape_sees_everything_else(other: str) -> None:
    text = "node A { x: F64? @default(1) @owner(core) }"
    assert shape_hash(compile_schema(other)) != shape_hash(compile_schema(text))


def test_bounds_are_compared_as_numbers() -> None:
    texts = [
        f"node A {{ x: F64 @range(x, {limits}) }}" for limits in ("0..9", "0.0..9.0", "0..9.5")
    ]
    one, two, three = (shape_hash(compile_schema(text)) for text in texts)
    assert one == two != three


def test_cardinality_and_embedding_are_part_of_the_shape() -> None:
    texts = [
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A @card(0..1)",
        "node A { t: String v: Vector(2)? }",
        'node A { t: String v: Vector(2)? @embed("t") }',
        'node A { t: String v: Vector(2)? @embed("t", model="m") }',
        "interface I { t: String v: Vector(2)? }",
        'interface I { t: String v: Vector(2)? @embed("t") }',
    ]
    assert len({shape_hash(compile_schema(text)) for text in texts}) == len(texts)
