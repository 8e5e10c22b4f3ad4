"""From collected violations to one error."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import (
    ConstraintViolation,
    DataError,
    DuplicateKey,
    EndpointNotFound,
    RecordError,
)
from omnigraph_core.violations import MAX_LISTED, Rule, Violation, Violations
from omnigraph_core.write.refuse import refuse
from tests.support.cases import each

CLASSES = {
    RecordError: {
        Rule.JSON, Rule.RECORD, Rule.UNKNOWN_TYPE, Rule.UNKNOWN_FIELD, Rule.VALUE,
        Rule.ID_MISMATCH,
    },
    ConstraintViolation: {
        Rule.REQUIRED, Rule.ENUM, Rule.RANGE, Rule.CHECK, Rule.UNIQUE, Rule.CARDINALITY,
        Rule.EMBEDDING,
    },
    DuplicateKey: {Rule.KEY},
    EndpointNotFound: {Rule.ENDPOINT, Rule.ORPHAN},
}  # fmt: skip


def violation(rule: Rule, line: int | None = None, message: str = "wrong") -> Violation:
    return Violation(rule, message, "Part", "stock", line=line)


def refused(*found: Violation, limit: int = MAX_LISTED) -> DataError:
    violations = Violations(limit)
    for item in found:
        violations.add(item)
    with pytest.raises(DataError) as caught:
        refuse(violations)
    return caught.value


def test_nothing_wrong_is_no_error() -> None:
    refuse(Violations())


@each("rule", list(Rule))
def test_every_rule_has_its_class(rule: Rule) -> None:
    (expected,) = (kind for kind, rules in CLASSES.items() if rule in rules)
    assert type(refused(violation(rule))) is expected


def test_one_class_if_they_have_one_in_common() -> None:
    assert type(refused(violation(Rule.ENUM), violation(Rule.RANGE))) is ConstraintViolation
    assert type(refused(violation(Rule.ENDPOINT), violation(Rule.ORPHAN))) is EndpointNotFound
    assert type(refused(violation(Rule.KEY), violation(Rule.UNIQUE))) is DataError


def test_what_is_counted_and_not_listed_decides_too() -> None:
    problem = refused(violation(Rule.ENUM), violation(Rule.KEY), limit=1)
    assert type(problem) is DataError
    assert len(problem.violations) == 1


def test_the_message_has_a_line_for_each() -> None:
    problem = refused(violation(Rule.ENUM, 7, "second"), violation(Rule.RANGE, 3, "first"))
    assert problem.message == "line 3: first\nline 7: second"
    assert problem.hint == "nothing was written"
    assert (problem.table, problem.line, problem.property) == ("Part", 3, "stock")
    assert problem.counts == {Rule.ENUM: 1, Rule.RANGE: 1}


def test_a_collector_of_many_lists_no_more_than_an_error_may() -> None:
    many = [violation(Rule.ENUM, line) for line in range(1, MAX_LISTED + 51)]
    problem = refused(*many, limit=10**6)
    assert len(problem.violations) == MAX_LISTED
    assert problem.message.endswith("and 50 more")
    assert problem.counts == {Rule.ENUM: MAX_LISTED + 50}


def test_collectors_together() -> None:
    first, second = Violations(1), Violations(1)
    for collector in (first, second):
        collector.add(violation(Rule.ENUM, 5))
        collector.add(violation(Rule.ENUM, 6))
    whole = Violations.together(first, second)
    assert (len(whole.listed), whole.total, whole.counts) == (2, 4, {Rule.ENUM: 4})
