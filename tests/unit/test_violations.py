"""Violations: places, the bounded list, exact counts."""

from __future__ import annotations

from omnigraph_core.violations import Rule, Violation, Violations
from tests.support.cases import each


def at(line: int | None, file: str | None = None, unit: str = "line") -> Violation:
    return Violation(Rule.RANGE, "too big", "Part", "stock", 9, file=file, line=line, unit=unit)


@each(
    ("violation", "text"),
    [
        (at(3, "parts.jsonl"), "parts.jsonl:3: too big"),
        (at(3), "line 3: too big"),
        (at(3, "parts.parquet", "row"), "parts.parquet, row 3: too big"),
        (at(2, None, "statement"), "statement 2: too big"),
        (at(None, "parts.jsonl"), "parts.jsonl: too big"),
        (at(None), "too big"),
    ],
)
def test_render_says_where(violation: Violation, text: str) -> None:
    assert violation.render() == text


def test_json_leaves_out_what_is_unknown_and_names_the_unit() -> None:
    assert at(3, "parts.parquet", "row").to_json() == {
        "rule": "range",
        "message": "too big",
        "type": "Part",
        "property": "stock",
        "value": 9,
        "file": "parts.parquet",
        "row": 3,
    }


def test_the_list_is_bounded_and_the_count_is_not() -> None:
    violations = Violations(limit=2)
    for line in (5, 1, 3):
        violations.add(at(line))
    violations.count(Rule.KEY, 7)
    assert [item.line for item in violations.listed] == [1, 5]
    assert violations.room == 0
    assert violations.total == 10
    assert violations.counts == {Rule.RANGE: 3, Rule.KEY: 7}


def test_together_keeps_all_that_is_listed_and_counted() -> None:
    first, second = Violations(limit=1), Violations()
    first.add(at(4))
    first.add(at(5))
    second.add(at(2))
    both = Violations.together(first, second)
    assert [item.line for item in both.listed] == [2, 4]
    assert both.total == 3
