"""Rows that do not allow a change: all of them are told, and nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.constants import COMPARE_ROWS, Constant
from omnigraph_core.errors import ConstraintViolation, DataError, UnsupportedMigration
from omnigraph_core.evolve import portions
from omnigraph_core.violations import MAX_LISTED, Rule
from tests.integration.evolve.sensors import SENSORS, apply, changed, column, load, new_graph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(tmp_path)


@pytest.fixture(params=["one pass", "many passes"])
def passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked at all together, or a few at a time."""
    if request.param == "many passes":
        few = Constant(COMPARE_ROWS.name, 2, COMPARE_ROWS.about)
        monkeypatch.setattr(portions, "COMPARE_ROWS", few)


def refused(og: Omnigraph, *edits: tuple[str, str]) -> DataError:
    before = og.snapshot()
    for options in ({"dry_run": True}, {}):
        with pytest.raises(DataError) as problem:
            apply(og, *edits, **options)
        assert og.snapshot() == before
    return problem.value


def found(error: DataError) -> list[tuple[str, str | None, str | None]]:
    return sorted((str(item.rule), item.property, item.id) for item in error.violations)


def test_nulls_in_a_required_property(og: Omnigraph) -> None:
    error = refused(og, ("  note: String?", "  note: String"), ("  scan: Blob?", "  scan: Blob"))
    assert isinstance(error, ConstraintViolation)
    assert found(error) == [
        ("required", "note", "s2"),
        ("required", "scan", "s2"),
        ("required", "scan", "s3"),
    ]
    assert "tighten_nullability node:Sensor.note: missing required property `note`" in str(error)
    assert "'s2'" in str(error)
    assert all(item.line is None for item in error.violations)


def test_values_outside_an_enum_a_range_and_a_pattern(og: Omnigraph) -> None:
    error = refused(
        og,
        ("enum(celsius, kelvin, rankine)", "enum(celsius, rankine)"),
        ("  kind: String", "  kind: enum(air, fire)"),
        (
            "  shape: Vector(2)?\n",
            '  shape: Vector(2)?\n  @range(count, 0..)\n  @check(text, "d$")\n',
        ),
    )
    assert found(error) == [
        ("check", "text", "s1"),
        ("enum", "kind", "s2"),
        ("enum", "unit", "s2"),
        ("enum", "unit", "s3"),
        ("range", "count", "s3"),
    ]


@pytest.mark.usefixtures("passes")
def test_values_that_are_not_unique(og: Omnigraph) -> None:
    unique = (
        "  shape: Vector(2)?\n",
        "  shape: Vector(2)?\n  @unique(note)\n  @unique(kind, note)\n",
    )
    error = refused(og, unique)
    assert [item.rule for item in error.violations] == [Rule.UNIQUE] * 2
    assert {item.property for item in error.violations} == {"note", "kind, note"}
    assert "'one' of" in str(error)
    assert "is held by" in str(error)


@pytest.mark.usefixtures("passes")
def test_a_default_that_fills_makes_duplicates(og: Omnigraph) -> None:
    unique = ("  shape: Vector(2)?\n", "  shape: Vector(2)?\n  @unique(label)\n")
    assert apply(og, unique) == ["add_constraint"]
    error = refused(og, unique, ("label: String? }", 'label: String @default("none") }'))
    assert error.counts == {Rule.UNIQUE: 1}  # two nulls become one value
    added = ("  text: String\n", "  text: String\n  code: I64 @default(7) @unique\n")
    assert refused(og, unique, added).counts == {Rule.UNIQUE: 2}


@pytest.mark.usefixtures("passes")
def test_sources_with_too_many_or_too_few_edges(og: Omnigraph) -> None:
    error = refused(og, ("@card(0..2)", "@card(1..1)"))
    assert [(item.value, item.rule) for item in error.violations] == [("s1", Rule.CARDINALITY)]
    assert "source 's1' has 2, allowed 1..1" in str(error)
    error = refused(og, ("@card(0..2)", "@card(2..2)"))  # s3 has none, which no write minds
    assert "source 's2' has 1, allowed 2..2" in str(error)
    assert [item.value for item in error.violations] == ["s2"]


def test_a_bound_that_rounding_had_passed(og: Omnigraph) -> None:
    """0.1 in 32 bits is more than 0.1 in 64."""
    ranged = ("  shape: Vector(2)?\n", "  shape: Vector(2)?\n  @range(reading, ..0.1)\n")
    load(og, {"type": "Sensor", "data": {**SENSORS[2], "reading": -1.0}})
    assert apply(og, ranged) == ["add_constraint"]
    error = refused(og, ranged, ("  reading: F32", "  reading: F64"))
    assert found(error) == [("range", "reading", "s1")]


def test_a_vector_still_to_be_made_becomes_a_plain_required_one(og: Omnigraph) -> None:
    added = ("  shape: Vector(2)?", '  shape: Vector(2)?\n  topic: Vector(4) @embed("text")')
    apply(og, added)
    error = refused(og, (added[0], added[1].replace(' @embed("text")', "")))
    assert [item.rule for item in error.violations] == [Rule.REQUIRED] * 3


def test_a_required_vector_without_a_text_to_make_it_from(og: Omnigraph) -> None:
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "text": "  "}})
    added = ("  shape: Vector(2)?", '  shape: Vector(2)?\n  topic: Vector(4) @embed("text")')
    assert found(refused(og, added)) == [("required", "topic", "s1")]


def test_only_so_many_rows_are_listed_and_all_are_counted(og: Omnigraph) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "Sensor", "data": {**SENSORS[1], "serial": f"x{number}"}} for number in range(150)
    ]
    load(og, *rows)
    error = refused(og, ("  note: String?", "  note: String"))
    assert len(error.violations) == MAX_LISTED
    assert error.counts == {Rule.REQUIRED: 151}
    assert "and 51 more" in str(error)


def test_what_is_not_supported_is_refused_as_a_whole(og: Omnigraph) -> None:
    before = og.snapshot()
    source = changed(("  reading: F32", "  reading: String"), ("  note: String?\n", ""))
    with pytest.raises(UnsupportedMigration, match="changing property type") as problem:
        og.schema_apply(source)
    assert problem.value.diagnostics[0].line == 7
    assert og.snapshot() == before
    assert column(og, "node:Sensor", "note")["s1"] == "one"


def test_every_violation_names_the_step_it_stands_against(og: Omnigraph) -> None:
    tight = ("  count: I32?\n", "  count: I32\n  @range(count, 0..)\n")
    listed = {str(item.rule): item.message for item in refused(og, tight).violations}
    assert listed["required"].startswith("tighten_nullability node:Sensor.count: ")
    assert listed["range"].startswith("add_constraint node:Sensor.count: ")
