"""Which tables are looked at: decided from catalogs, without opening one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff.model import EVERYTHING, ChangeFilter, ChangeOp
from omnigraph_core.diff.schemas import document_of
from omnigraph_core.diff.tables import check_type_names, pair_tables
from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.image import AcceptedSchema, TableOperation
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import continuity, next_document
from omnigraph_core.schema.document import build_document, render_document, schema_hash
from tests.support.cases import each
from tests.unit.manifest.samples import entry, image, snapshot

if TYPE_CHECKING:
    from omnigraph_core.diff.tables import TablePair
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot

FIRST = (
    "node Part { sku: String @key  size: I32? }  node Bin { code: String }  edge Fits: Part -> Bin"
)
"""With tables p, b and f."""
LATER = """
node Piece @rename_from("Part") {
  sku: String @key
  width: I32? @rename_from("size")
  note: String?
}
node Bin { code: String }
edge Fits: Piece -> Bin
"""
NEXT = {"table_version": 4, "physical_version": 9}


def accepted(text: str, before: AcceptedSchema | None = None) -> AcceptedSchema:
    compiled = compile_schema(text)
    if before is None:
        document = build_document(compiled, accepted=None)
    else:
        document = next_document(compiled, document_of(before))
    return AcceptedSchema(text, render_document(document), schema_hash(document))


SCHEMA = accepted(FIRST)


def table(key: str, location: str, **fields: object) -> TableEntry:
    return entry(key, location=location, **fields)


PART, BIN, FITS = table("node:Part", "p"), table("node:Bin", "b"), table("edge:Fits", "f")


def state(*entries: TableEntry, schema: AcceptedSchema = SCHEMA) -> Snapshot:
    return snapshot(image(*entries, schema=schema))


def shown(pairs: tuple[TablePair, ...]) -> list[tuple[str, str | None, str | None]]:
    return [
        (
            pair.type.table_key,
            pair.before and pair.before.entry.location,
            pair.after and pair.after.entry.location,
        )
        for pair in pairs
    ]


def pairs(
    before: Snapshot | None,
    after: Snapshot,
    filter: ChangeFilter = EVERYTHING,
    *,
    is_successive: bool = False,
) -> tuple[TablePair, ...]:
    found = None
    if before is not None and before.schema.hash != after.schema.hash:
        found = continuity(document_of(before.schema), document_of(after.schema))
    return pair_tables(before, after, found, filter, is_successive=is_successive)


def test_equal_versions_are_left_out() -> None:
    before = state(PART, BIN, FITS)
    after = state(replace(PART, **NEXT), BIN, replace(FITS, **NEXT))
    assert pairs(before, before) == ()
    assert shown(pairs(before, after)) == [("node:Part", "p", "p"), ("edge:Fits", "f", "f")]


def test_nodes_come_before_edges() -> None:
    tables = [replace(item, **NEXT) for item in (PART, BIN, FITS)]
    assert [key for key, _, _ in shown(pairs(state(PART, BIN, FITS), state(*tables)))] == [
        "node:Bin",
        "node:Part",
        "edge:Fits",
    ]


def test_tables_of_one_side() -> None:
    assert shown(pairs(None, state(PART, BIN))) == [
        ("node:Bin", None, "b"),
        ("node:Part", None, "p"),
    ]
    empty = replace(BIN, row_count=0)
    assert shown(pairs(state(PART), state(empty))) == [("node:Part", "p", None)]
    assert shown(pairs(state(PART, empty), state(PART))) == []


def test_a_renamed_type_is_the_same_table() -> None:
    later = accepted(LATER, SCHEMA)
    piece = table("node:Piece", "p", **NEXT)
    (pair,) = pairs(state(PART, BIN), state(piece, BIN, schema=later))
    assert (pair.type.name, pair.names) == ("Piece", {"Part", "Piece"})
    assert dict(pair.renamed) == {"sku": "sku", "size": "width"}
    for name in ("Part", "Piece"):
        wanted = ChangeFilter(type_names=frozenset({name}))
        assert len(pairs(state(PART), state(piece, schema=later), wanted)) == 1


def test_a_type_that_was_made_again_is_compared() -> None:
    """In two tables at two locations, row by row: what counts is what is there."""
    again = accepted(FIRST, accepted("node Bin { code: String }", SCHEMA))
    fresh = table("node:Part", "p-2")
    found = pairs(state(PART, BIN), state(fresh, BIN, schema=again))
    assert shown(found) == [("node:Part", "p", "p-2")]
    same_number = state(table("node:Part", "p-2", physical_version=PART.physical_version))
    assert len(pairs(state(PART), same_number)) == 1


def test_a_name_that_another_type_has_taken_over() -> None:
    """The rows of the type that is gone go first."""
    later = accepted(
        'node Part @rename_from("Bin") { code: String }',
        accepted("node Bin { code: String }", SCHEMA),
    )
    found = pairs(state(PART, BIN), state(table("node:Part", "b", **NEXT), schema=later))
    assert shown(found) == [("node:Part", "p", None), ("node:Part", "b", "b")]


def test_a_type_that_two_branches_made_is_compared() -> None:
    """Each has made it by itself, so it has two locations and, above the fork, no id in common."""
    base = accepted("node Bin { code: String }")
    ours, theirs = accepted(FIRST, base), accepted(FIRST + " node Extra { n: I64? }", base)
    found = continuity(document_of(ours), document_of(theirs), common=document_of(base))
    before, after = state(PART, schema=ours), state(table("node:Part", "p-2"), schema=theirs)
    (pair,) = pair_tables(before, after, found, EVERYTHING)
    assert pair.before is not None
    assert pair.after is not None
    assert dict(pair.renamed) == {"sku": "sku", "size": "size"}


def test_one_location_under_unrelated_names() -> None:
    """The table tells that it is the same; equal names of properties are what continues."""
    base = accepted("node Bin { code: String }")
    ours = accepted("node Bin { code: String } node Tag { name: String?  old: I64? }", base)
    theirs = accepted("node Bin { code: String } node Label { name: String?  new: I64? }", base)
    found = continuity(document_of(ours), document_of(theirs), common=document_of(base))
    before = state(table("node:Tag", "t"), schema=ours)
    after = state(table("node:Label", "t", **NEXT), schema=theirs)
    (pair,) = pair_tables(before, after, found, EVERYTHING)
    assert dict(pair.renamed) == {"name": "name"}


@each("operation", list(TableOperation))
def test_rewrites_right_after_each_other(operation: TableOperation) -> None:
    before, after = state(PART), state(replace(PART, **NEXT, operation=operation))
    is_rewrite = operation in (TableOperation.INDEX, TableOperation.COMPACTION)
    assert len(pairs(before, after, is_successive=True)) == (0 if is_rewrite else 1)
    assert len(pairs(before, after)) == 1, "on another branch it may be a rewrite of other rows"
    skipped = state(replace(PART, physical_version=9, table_version=5, operation=operation))
    assert len(pairs(before, skipped, is_successive=True)) == 1


@each(
    ("filter", "expected"),
    [
        (ChangeFilter(kinds=frozenset({EntityKind.EDGE})), ["edge:Fits"]),
        (ChangeFilter(type_names=frozenset({"Bin", "Fits"})), ["node:Bin", "edge:Fits"]),
        (ChangeFilter(ops=frozenset({ChangeOp.INSERT})), ["node:Bin", "node:Part"]),
        (ChangeFilter(ops=frozenset({ChangeOp.UPDATE})), ["node:Part"]),
        (ChangeFilter(ops=frozenset({ChangeOp.DELETE})), ["node:Part", "edge:Fits"]),
    ],
)
def test_what_a_filter_leaves_out(filter: ChangeFilter, expected: list[str]) -> None:
    """Bins come, fits go, parts are on both sides."""
    before, after = state(PART, FITS), state(replace(PART, **NEXT), BIN)
    assert [key for key, _, _ in shown(pairs(before, after, filter))] == expected


def test_names_are_checked_on_both_sides() -> None:
    before, after = state(PART), state(schema=accepted("node Crate { code: String }"))
    check_type_names(ChangeFilter(type_names=frozenset({"Part", "Crate"})), before, after)
    with pytest.raises(ConfigError, match=r"no type `Crat` \(did you mean `Crate`\?\)"):
        check_type_names(ChangeFilter(type_names=frozenset({"Part", "Crat"})), before, after)
