"""Row rules: each rule alone, its exceptions, what a violation carries, and all rules at once."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.violations import Rule, Violations
from omnigraph_core.write.batches import FRESH, Batch, Places
from omnigraph_core.write.constraints import check_rows
from tests.support.cases import each
from tests.support.committed import batch, graph_type

SCHEMA = """
node Part {
    code: String @key
    name: String
    state: enum(open, sealed)?
    labels: [String]?
    weights: [F32]?
    mass: F32?
    length: F64?
    stock: I64?
    serial: U64?
    drawing: Blob
    remark: String?
    shape: Vector(2)?
    meaning: Vector(2) @embed(remark)
    title: Vector(2) @embed(name)
    @range(length, 0.5..10)
    @range(mass, 0.1..0.9)
    @range(stock, -9007199254740993..9007199254740993)
    @range(serial, 2..)
    @check(name, "^[a-z]+")
}
edge Fits: Part -> Part {
    grade: enum(loose, tight)
    slack: F64?
}
"""
CATALOG = compile_schema(SCHEMA)
GOOD: dict[str, Any] = {
    "id": "p1",
    "code": "p1",
    "name": "bolt",
    "drawing": b"",
    "remark": "a bolt",
    "meaning": None,
    "title": None,
}
EDGE: dict[str, Any] = {"id": "f1", "src": "p1", "dst": "p2", "grade": "tight"}
PLACES = Places(("parts.jsonl",), ("line",))


def check(*rows: dict[str, Any], type: str = "Part") -> tuple[list[Any], list[bool] | None]:
    violations = Violations()
    good = check_rows(batch(graph_type(CATALOG, type), rows), PLACES, violations)
    return list(violations.listed), None if good is None else good.to_pylist()


def only(**values: Any) -> Any:
    """The one violation of a row that is good but for these values."""
    found, good = check(GOOD | values)
    assert good == [False]
    assert len(found) == 1
    return found[0]


def passes(**values: Any) -> bool:
    return check(GOOD | values) == ([], None)


def test_a_good_row_is_good() -> None:
    assert check(GOOD, GOOD | {"state": "open", "labels": [], "shape": [0.0, 0.0]}) == ([], None)
    assert check(EDGE, type="Fits") == ([], None)


def test_no_rows_are_good() -> None:
    part = graph_type(CATALOG, "Part")
    empty = Batch(part, batch(part, [GOOD]).rows.slice(0, 0))
    assert check_rows(empty, PLACES, Violations()) is None
    assert check() == ([], None)


def test_a_violation_says_what_and_where() -> None:
    found, good = check(GOOD, GOOD | {"id": "p2", "state": "lost"})
    assert good == [True, False]
    assert found[0].to_json() == {
        "rule": "enum",
        "message": "invalid enum value 'lost' on Part.state, expected open | sealed",
        "type": "Part",
        "property": "state",
        "value": "lost",
        "id": "p2",
        "file": "parts.jsonl",
        "line": 2,
    }


def test_a_required_value_is_missed() -> None:
    violation = only(name=None, remark="x", title=[1, 2])
    assert violation.rule is Rule.REQUIRED
    assert violation.message == "missing required property `name` on Part"


@pytest.mark.parametrize("end", ["src", "dst"])
def test_an_edge_needs_both_ends(end: str) -> None:
    found, good = check(EDGE | {end: None}, type="Fits")
    assert good == [False]
    assert (found[0].rule, found[0].property) == (Rule.REQUIRED, end)
    assert f"missing required property `{end}` on Fits" in found[0].message


def test_a_blob_is_bytes_or_an_address() -> None:
    assert passes(drawing=None, **{"drawing#uri": "s3://bin/a"})
    assert only(drawing=None).property == "drawing"


def test_a_vector_made_of_a_text_may_be_null() -> None:
    violations = Violations()
    rows = batch(graph_type(CATALOG, "Part"), [GOOD, GOOD | {"remark": None}])
    good = check_rows(rows, PLACES, violations)
    assert good is not None
    assert good.to_pylist() == [True, False]
    assert violations.listed[0].message == (
        "missing required property `meaning` on Part, and no text in `remark` to make it from"
    )


def test_a_blank_text_makes_no_vector() -> None:
    assert only(remark=" \n").property == "meaning"
    assert passes(remark=None, meaning=[1.0, 2.0])


def test_a_missing_text_is_reported_once() -> None:
    assert only(name=None).property == "name"  # and not `title`, which is made of it


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(value: float) -> None:
    found, _ = check(EDGE | {"slack": value}, type="Fits")
    assert [(v.rule, v.property) for v in found] == [(Rule.VALUE, "slack")]
    assert found[0].value in ("NaN", "Infinity", "-Infinity")
    for property in ("weights", "shape"):
        violation = only(**{property: [1.0, value]})
        assert violation.rule is Rule.VALUE
        assert violation.message.startswith(f"element 1 of Part.{property} is ")


def test_members_are_not_null() -> None:
    violation = only(labels=["a", None, None])
    assert violation.rule is Rule.VALUE
    assert violation.message == "element 1 of Part.labels is null, expected a value"
    assert only(shape=[None, 1.0]).rule is Rule.VALUE
    found, _ = check(GOOD | {"weights": [None, math.nan]})
    assert [v.message[:9] for v in found] == ["element 0", "element 1"]


def test_members_belong_to_their_rows() -> None:
    rows = [GOOD | {"labels": labels} for labels in ([], None, ["a"], [None], ["b", None])]
    assert check(*rows)[1] == [True, True, True, False, False]
    part = graph_type(CATALOG, "Part")
    whole = batch(part, rows).rows
    pieces = pa.concat_tables([whole.slice(1, 3), whole.slice(4, 1)])
    good = check_rows(Batch(part, pieces), PLACES, Violations())
    assert good is not None
    assert good.to_pylist() == [True, True, False, False]


def test_an_infinity_is_no_number_even_in_a_range() -> None:
    assert only(length=math.inf).rule is Rule.VALUE


def test_nan_is_outside_every_range() -> None:
    violation = only(length=math.nan)
    assert violation.rule is Rule.RANGE
    assert violation.message == "@range violation on Part.length: NaN is not in 0.5..10"


@pytest.mark.parametrize("value", [0.5, 10.0, None])
def test_a_range_includes_its_bounds(value: float | None) -> None:
    assert passes(length=value)


@pytest.mark.parametrize("value", [math.nextafter(0.5, 0), math.nextafter(10, 11)])
def test_a_range_excludes_the_next_number(value: float) -> None:
    assert only(length=value).rule is Rule.RANGE


def test_integers_are_compared_to_the_last_digit() -> None:
    assert passes(stock=2**53 + 1)
    assert passes(stock=-(2**53) - 1)
    assert only(stock=2**53 + 2).value == 2**53 + 2
    assert only(stock=-(2**53) - 2).rule is Rule.RANGE


def test_an_open_range() -> None:
    assert passes(serial=2**64 - 1)
    assert only(serial=1).message == "@range violation on Part.serial: 1 is not in 2.."


def test_bounds_are_read_with_the_width_of_the_property() -> None:
    assert passes(mass=0.1)
    assert passes(mass=0.9)
    assert only(mass=0.95).message == "@range violation on Part.mass: 0.95 is not in 0.1..0.9"
    assert only(mass=0.09).value == 0.09


@each(
    ("type", "bounds", "good", "bad"),
    [
        ("I32", "-9999999999..9999999999", [-(2**31), 2**31 - 1], []),
        ("I32", "3000000000..", [], [2**31 - 1]),
        ("U32", "..-1", [], [0]),
        ("U64", "-5..1.5", [0, 1], [2]),
        ("I64", "-1.5..1" + "0" * 300 + ".5", [-1, 2**63 - 1], [-2]),
        ("I64", "0..18446744073709551615", [2**63 - 1], [-1]),
        ("F64", "9007199254740993..9007199254740995", [9007199254740994.0], [2.0**53, 2.0**53 + 4]),
        ("F32", "16777217..16777219", [16777218.0], [16777216.0, 16777220.0]),
        ("F32", "..1" + "0" * 300 + ".0", [3e38], []),
    ],
)
def test_bounds_of_other_widths(type: str, bounds: str, good: list[Any], bad: list[Any]) -> None:
    text = f"node Item {{ code: String @key\n size: {type}\n @range(size, {bounds}) }}"
    item = compile_schema(text).nodes["Item"]
    rows = [{"id": "a", "code": "a", "size": size} for size in (*good, *bad)]
    found = check_rows(batch(item, rows), PLACES, Violations())
    expected = [True] * len(good) + [False] * len(bad)
    assert expected == ([True] * len(rows) if found is None else found.to_pylist())


def test_a_check_is_searched_for() -> None:
    assert passes(name="bolt 7")
    violation = only(name="7 bolt")
    assert violation.rule is Rule.CHECK
    assert violation.message == "@check violation on Part.name: '7 bolt' does not match '^[a-z]+'"


def test_edges_have_enums() -> None:
    found, _ = check(EDGE | {"grade": "none"}, type="Fits")
    assert found[0].message == "invalid enum value 'none' on Fits.grade, expected loose | tight"


def test_long_texts_are_cut() -> None:
    violation = only(state="x" * 500)
    assert violation.value == "x" * 79 + "…"
    assert len(violation.message) < 200


def test_every_problem_of_a_row_is_reported() -> None:
    found, good = check(GOOD | {"name": "7", "state": "x", "length": 0.0, "labels": [None]})
    assert good == [False]
    assert {v.rule for v in found} == {Rule.CHECK, Rule.ENUM, Rule.RANGE, Rule.VALUE}


def test_more_problems_than_are_listed_are_counted() -> None:
    violations = Violations(limit=3)
    rows = [GOOD | {"state": "x"}] * 10
    good = check_rows(batch(graph_type(CATALOG, "Part"), rows), PLACES, violations)
    assert good is not None
    assert not any(good.to_pylist())
    assert len(violations.listed) == 3
    assert violations.counts == {Rule.ENUM: 10}


def test_fresh_ids_are_not_named() -> None:
    fits = graph_type(CATALOG, "Fits")
    rows = batch(fits, [EDGE | {"grade": "x"}] * 2).rows
    violations = Violations()
    given = Batch(fits, rows.append_column(FRESH, pa.array([True, False])))
    check_rows(given, PLACES, violations)
    assert [v.id for v in violations.listed] == [None, "f1"]
