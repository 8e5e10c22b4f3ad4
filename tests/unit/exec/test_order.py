"""Order: the keys of a query, and sorting by them whatever the numbers."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.exec import order
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.guard import Guard
from omnigraph_core.exec.order import SortKey, argsort, best_rows, smallest_but, sort_keys
from omnigraph_core.exec.project import Rows
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.query.typed import Aggregate, AggregateFunction, Constant
from omnigraph_core.types import I64
from tests.support.people import people_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.context import Run
    from omnigraph_core.query.typed import TypedExpr

WIDE = st.integers(-(2**63), 2**63 - 1)
NARROW = st.integers(-3, 3)
HIGH = NARROW.map(lambda number: number * 2**60)
CLOSE = st.integers(2**62, 2**62 + 3) | st.integers(-(2**62), -(2**62) + 3)
Pair = tuple[int | None, int | None]


@pytest.fixture(scope="module", autouse=True, params=[512, 1], ids=["few", "many"])
def row_count(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sorted as few rows are, and as many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_FEW", request.param)
        patch.setattr(order, "_BLOCKS", 2)
        yield


@given(st.lists(WIDE) | st.lists(NARROW) | st.lists(HIGH | CLOSE) | st.lists(CLOSE))
def test_argsort(numbers: list[int]) -> None:
    found = argsort(np.array(numbers, np.int64)).tolist()

    assert found == sorted(range(len(numbers)), key=numbers.__getitem__)


@given(st.lists(WIDE | NARROW, min_size=1, max_size=40), st.data())
def test_smallest_but(numbers: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(numbers)))

    assert smallest_but(np.array(numbers, np.int64), count) == sorted(numbers)[count - 1]


def made(number: int) -> TypedExpr:
    """An expression that stands for a column a test makes."""
    return Aggregate(AggregateFunction.SUM, Constant(number, I64), I64)


def cell_rank(pairs: list[Pair], column: int, row: int) -> tuple[int, ...]:
    cell = pairs[row][column]
    return () if cell is None else (cell,)


CELLS = st.none() | NARROW | HIGH | CLOSE


@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=30),
    st.tuples(st.booleans(), st.booleans()),
    st.none() | st.integers(1, 12),
)
def test_best_rows(pairs: list[Pair], descending: tuple[bool, bool], count: int | None) -> None:
    columns = {made(n): pa.array([pair[n] for pair in pairs], pa.int64()) for n in (0, 1)}
    columns[made(2)] = pa.array(range(len(pairs)), pa.int64())
    keys = (*(SortKey(made(n), descending[n]) for n in (0, 1)), SortKey(made(2)))
    run = cast("Run", SimpleNamespace(guard=Guard(budget=2**40)))  # all that is asked for
    rows = best_rows(run, Rows(Frame(len(pairs)), columns), keys, count)

    wanted = list(range(len(pairs)))
    for n in (1, 0):
        wanted.sort(key=partial(cell_rank, pairs, n), reverse=descending[n])
    assert rows.made[made(2)].to_pylist() == wanted[:count]


def keys_of(result: str) -> list[tuple[str, bool]]:
    text = f"query q() {{ match {{ $p: Person  $p $k: knows $_  $p worksAt $c }} {result} }}"
    ir = compile_one(text, people_catalog(), None).ir
    assert isinstance(ir, QueryIR)
    found = []
    for key in sort_keys(ir):
        name = getattr(key.expr, "property", None) or getattr(key.expr, "function", "?")
        found.append((f"{getattr(key.expr, 'variable', '')}.{name}", key.is_descending))
    return found


def test_ties_of_rows_break_by_their_variables() -> None:
    keys = keys_of("return { $p.name as n, 1 } order { $p.age desc, n, $p.age }")
    named = [key for key, _ in keys if "#" not in key]

    assert keys[:2] == [("p.age", True), ("p.name", False)]
    assert named == ["p.age", "p.name", "c.id", "k.id", "p.id"]
    assert len(keys) == 6
    assert "#" in keys[-1][0]


def test_ties_of_made_rows_break_by_their_cells() -> None:
    grouped = keys_of("return { $c, $p.age, 1, count($p) as n } order { n desc, max($p.name) }")
    different = keys_of("return distinct { $c, $p.age as a, 1 } order { a }")

    assert grouped == [(".count", True), (".max", False), ("c.id", False), ("p.age", False)]
    assert different == [("p.age", False), ("c.id", False)]
