"""Every mistake a record can hold: the error of the load, its parts and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.violations import Rule
from tests.support.cases import each
from tests.support.loading import refused, small_graph
from tests.support.wrong_records import RECORDS, ROWS, SETS

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.violations import Violation
    from tests.support.wrong_records import Wrong


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """One graph for every refused write: each of them leaves it as it was."""
    return small_graph(tmp_path_factory.mktemp("errors"))


@each("wrong", [*RECORDS, *ROWS, *SETS], ids=lambda wrong: wrong.name)
def test_load(graph: Omnigraph, wrong: Wrong) -> None:
    """The load is refused, and a dry run finds the same."""
    problem = refused(graph, *wrong.given, **wrong.options)
    assert type(problem) is wrong.error
    assert problem.hint == "nothing was written"
    found = problem.violations[0]
    assert_is(found, wrong)
    assert problem.counts[wrong.rule] == len(problem.violations)
    assert found.render() in problem.message
    assert (problem.table, problem.line, problem.property) == (
        found.type_name,
        found.line,
        found.property,
    )
    again = refused(graph, *wrong.given, **wrong.options, dry_run=True)
    assert type(again) is type(problem)
    assert again.violations == problem.violations
    assert again.counts == problem.counts


def assert_is(found: Violation, wrong: Wrong) -> None:
    assert (found.rule, found.line, found.unit, found.file) == (
        wrong.rule, wrong.line, "line", None,
    )  # fmt: skip
    assert (found.type_name, found.property) == (wrong.type_name, wrong.property)
    assert (found.value, found.id) == (wrong.value, wrong.id)
    for fragment in wrong.says:
        assert fragment in found.message


def test_every_rule_of_a_load_is_in_the_table() -> None:
    """A vector that cannot be made is an error of another class."""
    assert {wrong.rule for wrong in (*RECORDS, *ROWS, *SETS)} == set(Rule) - {Rule.EMBEDDING}
