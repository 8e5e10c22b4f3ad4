"""What becomes of the rows of a match: columns, groups, order, limits, as the oracle has them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.exec import (
    aggregate,
    collect,
    distinct,
    group,
    order,
    ordinals,
    scope,
    value_counts,
)
from tests.support.dense_runs import NOTHING, PLENTY
from tests.support.examples import examples
from tests.support.result_halves import Items, expected, new_items, queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return new_items(tmp_path_factory.mktemp("collect"))


@pytest.fixture(scope="module", params=[PLENTY, NOTHING], ids=["kept", "too large"])
def stored(request: pytest.FixtureRequest, graph: Omnigraph) -> Items:
    """All columns in memory, or none of them."""
    return Items(graph, request.param)


@contextmanager
def hurried() -> Iterator[None]:
    """Rows come a few at a time, and what is done for many is done for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scope, "PORTION_ROWS", 7)
        patch.setattr(aggregate, "_PORTION_ROWS", 5)
        patch.setattr(aggregate, "_MOST_WAITING", 3)
        patch.setattr(distinct, "_MOST_WAITING", 3)
        patch.setattr(collect, "_MOST_WAITING", 3)
        patch.setattr(order, "_FEW", 2)
        patch.setattr(order, "_BLOCKS", 2)
        patch.setattr(group, "_SMALL_SPACE", 1)
        patch.setattr(group, "_SPACE_PER_ROW", 0)
        patch.setattr(ordinals, "_FEW", 0)
        patch.setattr(value_counts, "_MOST_FLAGS", 30)
        patch.setattr(value_counts, "_MOST_WAITING", 3)
        yield


def agrees(stored: Items, text: str, limit: int = 4, offset: int = 2) -> None:
    """Equal rows in the same order; without an order, as many of those there are."""
    found = stored.rows(text, limit=limit, offset=offset)
    wanted = expected(text, limit=limit, offset=offset)
    if "order {" in text:
        assert found == wanted
        return
    assert len(found) == len(wanted)
    uncut = text.partition("\nlimit")[0] + ("}" if "\nlimit" in text else "")
    everything = expected(uncut, limit=limit, offset=offset)
    for row in found:
        everything.remove(row)


@settings(max_examples=examples(150), deadline=None)
@given(queries(), st.integers(0, 6), st.integers(0, 30))
def test_results(stored: Items, text: str, limit: int, offset: int) -> None:
    agrees(stored, text, limit, offset)


@settings(max_examples=examples(150), deadline=None)
@given(queries(), st.integers(0, 6), st.integers(0, 30))
def test_results_of_rows_that_come_in_portions(
    stored: Items, text: str, limit: int, offset: int
) -> None:
    with hurried():
        agrees(stored, text, limit, offset)
