"""Lines about a schema that differs: renames are told by what continues, not by hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diff.schemas import schema_steps
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document import build_document, catalog_from_document

if TYPE_CHECKING:
    from omnigraph_core.schema.document import SchemaDocument

FIRST = """
interface Named { name: String? }
node Part implements Named { sku: String @key  size: I32? }
node Bin { code: String @key }
edge Fits: Part -> Bin
"""
RENAMED = """
interface Named { name: String? }
node Piece @rename_from("Part") implements Named {
  sku: String @key
  width: I64? @rename_from("size")
}
node Bin { code: String @key }
edge Fits: Piece -> Bin
"""
WITHOUT_HINTS = RENAMED.replace('@rename_from("Part")', "").replace('@rename_from("size")', "")


def document(text: str, accepted: SchemaDocument | None = None) -> SchemaDocument:
    return build_document(compile_schema(text), accepted=accepted)


def steps(before: SchemaDocument, after: SchemaDocument) -> list[str]:
    common = min(before, after, key=lambda item: item.next_identity_id)
    found = continuity(before, after, common=common)
    return [
        line.rpartition(" [")[0]
        for line in schema_steps(before, catalog_from_document(after), found)
    ]


FORWARD = [
    "rename_type node from=Part to=Piece",
    "rename_property node:Piece from=size to=width",
    "widen_property node:Piece.width from_type=I32? to_type=I64?",
]


def test_equal_schemas_have_no_steps() -> None:
    first = document(FIRST)
    assert steps(first, first) == []
    renamed = document(RENAMED, first)
    assert steps(renamed, renamed) == []


def test_renames() -> None:
    first = document(FIRST)
    assert steps(first, document(RENAMED, first)) == FORWARD


def test_hints_that_are_gone_do_not_matter() -> None:
    first = document(FIRST)
    later = document(WITHOUT_HINTS, document(RENAMED, first))
    assert steps(first, later) == FORWARD


def test_backwards() -> None:
    first = document(FIRST)
    found = steps(document(RENAMED, first), first)
    assert found[:2] == [
        "rename_type node from=Piece to=Part",
        "rename_property node:Part from=width to=size",
    ]
    assert len(found) == 3
    assert "node:Part.size" in found[2]


def test_properties_and_types_come_and_go() -> None:
    first = document(FIRST)
    second = document(
        """
        interface Named { name: String?  label: String? }
        node Part implements Named { sku: String @key }
        node Crate { code: String @key }
        """,
        first,
    )
    assert steps(first, second) == [
        "add_property interface:Named.label property_type=String?",
        "add_type node:Crate",
        "add_property node:Part.label property_type=String?",
        "drop_property node:Part.size mode=soft",
        "drop_type edge:Fits mode=soft",
        "drop_type node:Bin mode=soft",
    ]
