"""What every operation asks of an S3 store: within its budget, flat, and as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.commit.requests import (
    AMORTISED,
    AMORTISED_BUDGET,
    BUDGETS,
    GROWING,
    KINDS,
    ON_BRANCH,
    ONE_TABLE,
    TOLERANCE,
    WITH_FLUSH,
    Measured,
    amortised,
    broken_budgets,
    measure,
    measure_branch_create,
    wide_schema,
)

if TYPE_CHECKING:
    from tests.support.s3 import S3Server

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "internals" / "costs.md"
DEPTHS = (10, 100)


@pytest.fixture(scope="module")
def measured(s3_server: S3Server) -> Measured:
    return measure(s3_server, DEPTHS)


def cells(heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading of the page: first cell → the others."""
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    found = next(part for part in section if part.startswith(f"{heading}\n"))
    lines = [line for line in found.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows if not row[0].startswith("-")}


def test_budgets_hold(measured: Measured) -> None:
    assert broken_budgets(measured) == []


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_can_be_broken(measured: Measured, name: str) -> None:
    dear = dict(measured[100])
    dear[name] = type(dear[name])((BUDGETS[name] + 1, 0, 0, 0, 0))
    assert any(name in problem for problem in broken_budgets({100: dear}))


def test_nothing_but_reading_the_log_grows(measured: Measured) -> None:
    shallow, deep = (measured[depth] for depth in DEPTHS)
    grown = {n for n in deep if abs(deep[n].total - shallow[n].total) > TOLERANCE}
    assert grown <= GROWING


def test_flushes_are_rare_enough(measured: Measured) -> None:
    for counts in measured.values():
        assert counts[ONE_TABLE].total < amortised(counts) <= AMORTISED_BUDGET


def test_creating_a_branch_costs_the_same_in_a_graph_of_many_types(s3_server: S3Server) -> None:
    few = measure_branch_create(s3_server, wide_schema(3))
    assert few == measure_branch_create(s3_server, wide_schema(40))
    assert few.total <= 8


def test_the_page_says_what_is_measured(measured: Measured) -> None:
    header, *rows = cells("Requests").items()
    assert header[1][: len(KINDS) + 1] == [*KINDS, "all"]
    told = {name: [int(cell) for cell in row[: len(KINDS) + 1]] for name, row in rows}
    for depth, counts in measured.items():
        flat = {name: [*c.by_kind, c.total] for name, c in counts.items() if name not in GROWING}
        assert told == flat, f"at depth {depth}"


def test_the_page_says_what_grows(measured: Measured) -> None:
    header, *rows = cells("What grows").items()
    assert header[1][: len(DEPTHS)] == [f"depth {depth}" for depth in DEPTHS]
    told = {name: [float(cell) for cell in row[: len(DEPTHS)]] for name, row in rows}
    expected = {
        name: [measured[depth][name].total for depth in DEPTHS]
        for name in measured[10]
        if name in GROWING
    }
    spread = [round(amortised(measured[depth]), 1) for depth in DEPTHS]
    assert told == {**expected, AMORTISED: spread}


def test_the_page_explains_the_commit_request_by_request(measured: Measured) -> None:
    steps = cells("Where the requests of a commit go")
    kinds = [row[0] for name, row in steps.items() if name.isdigit()]
    on_main, on_branch = measured[100][ONE_TABLE], measured[100][ON_BRANCH]
    assert tuple(kinds.count(kind) for kind in KINDS) == on_main.by_kind
    assert on_branch.total > on_main.total
    assert measured[100][WITH_FLUSH].total > on_main.total
