"""merge.schemas: what a merged schema is made of, beyond its text (tests/corpus/merge_schema)."""

from __future__ import annotations

from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.merge.model import MergeConflictKind
from omnigraph_core.merge.schema_parts import document_of
from omnigraph_core.merge.schemas import SchemaMerge, merge_schemas
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document import build_document, render_document, schema_hash
from tests.support.accepted import first, then

BASE = "node Part { sku: String @key  width: I32? }"


def ids(merge: SchemaMerge) -> dict[str, int]:
    found = {}
    for item in document_of(merge.accepted).types:
        found[item.name] = item.type_id
        found |= {f"{item.name}.{prop.name}": prop.prop_id for prop in item.properties}
    return found


def kept(merge: SchemaMerge) -> SchemaMerge:
    assert merge.conflicts == ()
    return merge


def test_what_ours_has_keeps_its_ids_and_what_theirs_adds_brings_its_own() -> None:
    base = first(BASE)
    ours = then(base, f"{BASE} node Bin {{ code: String }}")
    theirs = then(
        base, 'node Piece @rename_from("Part") { sku: String @key  width: I32?  height: I32? }'
    )
    found = ids(kept(merge_schemas(base, ours, theirs)))
    at_base, at_ours, at_theirs = (
        ids(SchemaMerge(item, (), is_changed=False)) for item in (base, ours, theirs)
    )
    assert found["Piece"] == at_base["Part"]
    assert found["Piece.width"] == at_base["Part.width"]
    assert found["Bin.code"] == at_ours["Bin.code"]
    assert found["Piece.height"] == at_theirs["Piece.height"]


def test_ids_that_are_in_use_are_drawn_anew() -> None:
    base = first(BASE)
    ours, theirs = (plainly(base, f"{BASE} node {name} {{}}") for name in ("Bin", "Shelf"))
    found = ids(kept(merge_schemas(base, ours, theirs)))
    assert found["Bin"] == ids(SchemaMerge(ours, (), is_changed=False))["Bin"]
    assert {"Bin", "Shelf"} <= set(found)
    assert len(set(found.values())) == len(found)


def plainly(base: AcceptedSchema, source: str) -> AcceptedSchema:
    """The schema that follows, with ids counted on by one: two branches draw the same."""
    document = build_document(compile_schema(source), accepted=document_of(base))
    return AcceptedSchema(source, render_document(document), schema_hash(document))


def test_a_branch_merges_again_after_both_went_on() -> None:
    base = first(BASE)
    ours = then(base, f"{BASE} node Bin {{ code: String }}")
    theirs = then(base, f"{BASE} node Shelf {{ code: String }}")
    merged = kept(merge_schemas(base, ours, theirs)).accepted
    later = then(
        theirs, f'{BASE} node Rack @rename_from("Shelf") {{ number: String @rename_from("code") }}'
    )
    again = kept(merge_schemas(theirs, merged, later))
    assert set(ids(again)) == {
        *("Part", "Part.sku", "Part.width"),
        *("Bin", "Bin.code", "Rack", "Rack.number"),
    }
    assert ids(again)["Rack.number"] == ids(SchemaMerge(merged, (), is_changed=False))["Shelf.code"]
    back = kept(merge_schemas(later, later, again.accepted))
    assert back.accepted == again.accepted


def test_what_both_added_merges_again() -> None:
    base = first(BASE)
    ours = then(
        base,
        f"{BASE} node Bin {{ code: String }}",
        f"{BASE} node Bin {{ code: String }} node Box {{}}",
    )
    theirs = then(
        base, f"{BASE} node Rack {{}}", f"{BASE} node Rack {{}} node Bin {{ code: String }}"
    )
    merged = kept(merge_schemas(base, ours, theirs)).accepted
    later = then(theirs, f"{BASE} node Rack {{}} node Bin {{ code: String  size: I32? }}")
    assert "Bin.size" in ids(kept(merge_schemas(theirs, merged, later)))


def test_a_commit_of_elsewhere_brings_only_its_own_change() -> None:
    base = first(BASE)
    ours = then(base, f"{BASE} node Box {{}}")
    parent = then(base, f"{BASE} node Bin {{ code: String }}")
    picked = then(parent, f"{BASE} node Bin {{ code: String }} node Shelf {{}}")
    found = ids(kept(merge_schemas(parent, ours, picked)))
    assert {"Box", "Shelf"} <= set(found)
    assert "Bin" not in found


def test_taking_a_change_back() -> None:
    base = first(BASE)
    changed = then(base, BASE.replace("width: I32?", "width: I32?  height: I32?"))
    ours = then(changed, BASE.replace("width: I32?", "width: I32?  height: I32?  depth: I32?"))
    merge = kept(merge_schemas(changed, ours, base))
    assert set(ids(merge)) == {"Part", "Part.sku", "Part.width", "Part.depth"}


def test_a_widening_cannot_be_taken_back() -> None:
    base = first(BASE)
    changed = then(base, BASE.replace("I32", "I64"))
    ours = then(changed, BASE.replace("I32", "I64") + " node Bin {}")
    (conflict,) = merge_schemas(changed, ours, base).conflicts
    assert conflict.kind is MergeConflictKind.SCHEMA_CONFLICT
    assert (conflict.table_key, conflict.row_id, conflict.properties) == (
        "node:Part",
        None,
        ("width",),
    )
    assert "rows of ours cannot follow" in conflict.message


def test_conflicts_leave_ours_as_it_is_and_name_every_property() -> None:
    base = first("node Part { p: U32  q: U32 }")
    ours = then(base, "node Part { p: U64  q: U64 }")
    theirs = then(base, "node Part { p: I64  q: I64 }")
    merge = merge_schemas(base, ours, theirs)
    assert (merge.accepted, merge.is_changed) == (ours, False)
    assert [item.properties for item in merge.conflicts] == [("p",), ("q",)]


def test_a_text_that_differs_in_layout_only_changes_nothing() -> None:
    base = first(BASE)
    ours = then(base, f"{BASE} node Bin {{}}")
    laid_out = first("// parts\n" + BASE.replace("{", "{\n"))
    assert laid_out.hash == base.hash
    assert merge_schemas(base, ours, laid_out).accepted == ours


def test_rows_of_theirs_find_their_columns_in_the_merged_schema() -> None:
    base = first(BASE)
    ours = then(base, 'node Piece @rename_from("Part") { sku: String @key  width: I32? }')
    theirs = then(
        base, 'node Part { sku: String @key  breadth: I32? @rename_from("width")  depth: I32? }'
    )
    merged = document_of(kept(merge_schemas(base, ours, theirs)).accepted)
    found = continuity(document_of(theirs), merged, common=document_of(base))
    assert found.nodes == {"Part": "Piece"}
    assert found.properties["node", "Part"] == {
        "sku": "sku",
        "breadth": "breadth",
        "depth": "depth",
    }
