"""schema.continuity and schema.relabel: what continues what, between branches too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import Continuity, continuity, next_document
from omnigraph_core.schema.document import build_document
from omnigraph_core.schema.document.wire import document_from_json, document_to_json
from omnigraph_core.schema.migrate import StepKind
from omnigraph_core.schema.relabel import plan_continued

if TYPE_CHECKING:
    from omnigraph_core.schema.document import SchemaDocument

BASE = """
interface Named { name: String }
node Part implements Named { sku: String  width: I32? }
node Bin { code: String }
edge In: Part -> Bin { since: Date? }
"""


def first(source: str = BASE) -> SchemaDocument:
    return build_document(compile_schema(source), accepted=None, domain="domain")


def after(document: SchemaDocument, *sources: str) -> SchemaDocument:
    for source in sources:
        document = next_document(compile_schema(source), document)
    return document


def test_a_document_continues_itself() -> None:
    assert continuity(first(), first()) == Continuity(
        nodes={"Bin": "Bin", "Part": "Part"},
        edges={"In": "In"},
        interfaces={"Named": "Named"},
        properties={
            ("node", "Bin"): {"code": "code"},
            ("node", "Part"): {"name": "name", "sku": "sku", "width": "width"},
            ("edge", "In"): {"since": "since"},
            ("interface", "Named"): {"name": "name"},
        },
    )


def test_renames_are_followed_over_several_migrations_both_ways() -> None:
    base = first()
    once = after(base, BASE.replace("width: I32?", 'breadth: I32? @rename_from("width")'))
    twice = after(once, 'node Piece @rename_from("Part") { girth: I32? @rename_from("breadth") }')
    found = continuity(base, twice)
    assert found.nodes == {"Part": "Piece"}
    assert (found.edges, found.interfaces) == ({}, {})
    assert found.properties == {("node", "Part"): {"width": "girth"}}
    back = continuity(twice, base)
    assert back.properties == {("node", "Piece"): {"girth": "width"}}


def test_a_name_that_went_to_something_else_stays_with_its_id() -> None:
    base = first("node Part { width: I32? }")
    side = after(
        base,
        'node Part { breadth: I32? @rename_from("width") }',
        "node Part { breadth: I32?  width: I32? }",
    )
    assert continuity(base, side).properties["node", "Part"] == {"width": "breadth"}
    assert continuity(side, base).properties["node", "Part"] == {"breadth": "width"}


def test_what_was_declared_anew_continues_by_name_if_its_values_can() -> None:
    base = first("node Part { size: I32?  note: String? } node Bin {}")
    side = after(base, "node Part {}", "node Part { size: I64?  note: I32? } node Bin {}")
    found = continuity(base, side)
    assert found.nodes == {"Part": "Part", "Bin": "Bin"}
    assert found.properties["node", "Part"] == {"size": "size"}


def test_a_type_declared_anew_continues_if_its_rows_could_stay() -> None:
    base = first("node Part { a: I32 @key } node Bin {} edge In: Part -> Bin edge Near: Bin -> Bin")
    side = after(
        base,
        "node Bin {}",
        "node Part { a: I32  b: I32 @key } node Bin {} edge Near: Bin -> Bin",
        "node Part { a: I32  b: I32 @key } node Bin {} edge In: Bin -> Part edge Near: Bin -> Bin",
    )
    found = continuity(base, side)
    assert (found.nodes, found.edges) == ({"Bin": "Bin"}, {"Near": "Near"})


def test_branches_have_their_additions_by_name() -> None:
    base = first("node Part {}")
    ours = after(base, "node Part { width: I32? } node Bin { code: String }")
    theirs = after(base, "node Part { height: I32?  width: I32? } node Shelf {} node Bin {}")
    found = continuity(ours, theirs, common=base)
    assert found.nodes == {"Part": "Part", "Bin": "Bin"}
    assert found.properties == {("node", "Part"): {"width": "width"}, ("node", "Bin"): {}}


def test_without_a_common_document_names_come_first() -> None:
    base = first("node Part { width: I32? }")
    side = after(
        base,
        'node Piece @rename_from("Part") { width: I32? }',
        "node Piece { width: I32? } node Part {}",
    )
    nothing = replace(base, next_identity_id=0)
    assert continuity(base, side, common=base).nodes == {"Part": "Piece"}
    assert continuity(base, side, common=nothing).nodes == {"Part": "Part"}


def test_an_addition_that_a_merge_carried_over_is_known_by_its_id() -> None:
    base = first("node Part {}")
    ours = after(base, "node Part {} node Bin { code: String }")
    merged = after(ours, 'node Part {} node Box @rename_from("Bin") { code: String }')
    assert continuity(ours, merged, common=base).nodes == {"Bin": "Box", "Part": "Part"}


def test_branches_draw_different_ids_and_equal_changes_equal_ones() -> None:
    base = first("node Part {}")
    one = after(base, "node Part {} node Bin {}")
    two = after(base, "node Part {} node Shelf {}")
    drawn = [{item.type_id for item in side.nodes} for side in (base, one, two)]
    assert drawn[1] & drawn[2] == drawn[0]
    assert after(base, "node Part {} node Bin {}") == one
    assert document_from_json(document_to_json(one)) == one


def test_a_change_that_adds_nothing_draws_nothing() -> None:
    base = first()
    side = after(base, BASE.replace("sku: String", "sku: String @unique"))
    assert side.next_identity_id == base.next_identity_id


def test_a_hint_tells_two_changes_of_one_shape_apart() -> None:
    base = first("node Part { p: I32? }")
    renamed = after(base, 'node Part { q: I32? @rename_from("p")  r: I32? }')
    anew = after(base, "node Part { q: I32?  r: I32? }")
    ids = [{p.prop_id for p in side.nodes[0].properties} for side in (renamed, anew)]
    assert ids[0].isdisjoint(ids[1])


def test_a_plan_over_several_migrations_uses_later_names() -> None:
    base = first("node Part { sku: String @key  width: I32? } edge Fits: Part -> Part")
    side = after(
        base,
        'node Piece @rename_from("Part") { sku: String @key  breadth: I32? @rename_from("width") }'
        "edge Fits: Piece -> Piece",
        "node Piece { sku: String @key  breadth: I64  width: String? } edge Fits: Piece -> Piece",
    )
    plan = plan_continued(base, side)
    assert plan.supported
    assert [step.describe() for step in plan.steps] == [
        "widen_property node:Piece.breadth from_type=I32? to_type=I64? [safe, rewrite]",
        "tighten_nullability node:Piece.breadth [validated, scan]",
        "add_property node:Piece.width property_type=String? [safe, none]",
    ]


def test_a_plan_follows_embeddings_and_constraints() -> None:
    base = first('node Part { text: String @unique  v: Vector(2)? @embed("text") }')
    side = after(
        base,
        'node Part { body: String @unique @rename_from("text")  v: Vector(2)? @embed("body") }',
        'node Part { body: String @unique  v: Vector(2)? @embed("body")  n: I32 @default(1) }',
    )
    assert [step.kind for step in plan_continued(base, side).steps] == [StepKind.ADD_PROPERTY]
