"""Broken rules as conflicts: kinds, places, and one for each row."""

from __future__ import annotations

import pyarrow as pa

from omnigraph_core.merge.model import MergeConflictKind
from omnigraph_core.merge.violations import RowPlaces, to_conflicts
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.violations import Rule, Violation
from tests.support.cases import each

CATALOG = compile_schema(
    """
    node Part { sku: String @key }
    node Holds { sku: String @key }
    edge Holds: Part -> Part
    edge Fits: Part -> Part
    """
)
PLACES = RowPlaces(
    tables=(
        ("node:Part", pa.chunked_array([["p1", "p 2"]])),
        ("node:Holds", pa.chunked_array([["h1"]])),
    )
)


@each(
    ("rule", "kind"),
    [
        (Rule.UNIQUE, MergeConflictKind.UNIQUE_VIOLATION),
        (Rule.KEY, MergeConflictKind.UNIQUE_VIOLATION),
        (Rule.ENDPOINT, MergeConflictKind.ORPHAN_EDGE),
        (Rule.ORPHAN, MergeConflictKind.ORPHAN_EDGE),
        (Rule.CARDINALITY, MergeConflictKind.CARDINALITY_VIOLATION),
        (Rule.REQUIRED, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION),
        (Rule.ENUM, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION),
        (Rule.RANGE, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION),
        (Rule.CHECK, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION),
    ],
)
def test_kinds(rule: Rule, kind: MergeConflictKind) -> None:
    (conflict,) = to_conflicts([Violation(rule, "wrong", "Fits", id="x")], CATALOG, {}, {})
    assert (conflict.table_key, conflict.row_id, conflict.kind) == ("edge:Fits", "x", kind)


def test_places() -> None:
    placed = PLACES.at(Violation(Rule.UNIQUE, "taken", "Part", id="p 2"), 0, 1)
    assert placed.place() == "node:Part 'p 2'"
    same_name = [
        PLACES.at(Violation(Rule.UNIQUE, "taken", "Holds", id="h1"), 1, 0),
        Violation(Rule.ORPHAN, "lost", "Holds", id="h1"),
        Violation(Rule.RANGE, "far", "Holds", id="h1"),
    ]
    found = to_conflicts(same_name, CATALOG, {}, {})
    assert [item.table_key for item in found] == ["node:Holds", "edge:Holds", "node:Holds"]


def test_one_conflict_for_a_row_and_kind() -> None:
    found = to_conflicts(
        [
            Violation(Rule.ENDPOINT, "src missing", "Fits", id="e"),
            Violation(Rule.ENDPOINT, "dst missing", "Fits", id="e"),
            Violation(Rule.ORPHAN, "src missing", "Fits", id="e"),
            Violation(Rule.UNIQUE, "taken", "Fits", id="e"),
        ],
        CATALOG,
        {"edge:Fits": "edge:Old"},
        {},
    )
    assert [(item.table_key, item.kind, item.message) for item in found] == [
        ("edge:Old", MergeConflictKind.ORPHAN_EDGE, "src missing; dst missing"),
        ("edge:Old", MergeConflictKind.UNIQUE_VIOLATION, "taken"),
    ]


def test_what_concerns_no_row_stays_apart() -> None:
    many = [Violation(Rule.CARDINALITY, f"source {n}", "Fits") for n in (1, 2, 1)]
    found = to_conflicts(many, CATALOG, {}, {})
    assert [(item.row_id, item.message) for item in found] == [
        (None, "source 1"),
        (None, "source 2"),
    ]


def test_rows_in_conflict_break_nothing() -> None:
    violations = [Violation(Rule.ORPHAN, "lost", "Fits", id=id) for id in ("e1", "e2")]
    found = to_conflicts(violations, CATALOG, {}, {"edge:Fits": frozenset({"e1"})})
    assert [item.row_id for item in found] == ["e2"]
