"""Distances and the nearest rows: every way to them gives the same rows and the same values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph_core.constants import Constant as Fixed
from omnigraph_core.errors import BudgetExceeded, QueryCancelled
from omnigraph_core.exec import vectors as module
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.guard import Cancellation, Guard
from omnigraph_core.exec.query_vectors import QueryVectors, query_vector
from omnigraph_core.exec.rank import rank_ties, rank_values, top_numbers
from omnigraph_core.exec.vectors import nearest_scores
from omnigraph_core.query.typed import Constant, Nearest, PropertyValue
from omnigraph_core.schema.catalog import NodeType, PropertyDef
from omnigraph_core.types import PropType, Scalar
from tests.support.dense_runs import NOTHING, PLENTY, Runs
from tests.support.examples import examples
from tests.support.parts import new_table
from tests.support.vector_tables import (
    anywhere,
    clustered,
    cosine_distances,
    queries_for,
    vector_rows,
    vector_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from omnigraph_core.exec.context import Run
    from omnigraph_core.storage.dataset import Table

WAYS = {
    "screened": (PLENTY, 2**29, True),
    "indexed": (PLENTY, 0, True),
    "streamed": (PLENTY, 0, False),
    "indexed, nothing kept": (NOTHING, 2**29, True),
    "streamed, nothing kept": (NOTHING, 2**29, False),
}
"""Bytes of the cache, bytes of vectors to compare in memory, and whether there is an index."""

SMALL_WIDTH = 3
CHANCE = np.random.default_rng(3)
SMALL: list[list[float] | None] = [
    *CHANCE.integers(-2, 3, (150, SMALL_WIDTH)).astype(float).tolist(),  # many are equal
    *CHANCE.standard_normal((100, SMALL_WIDTH)).tolist(),
    None,
    [0.0] * SMALL_WIDTH,
    None,
    *CHANCE.standard_normal((60, SMALL_WIDTH)).tolist(),
]


def field_of(width: int) -> PropertyValue:
    return PropertyValue("x", "shape", PropType(Scalar.VECTOR, dimension=width, is_nullable=True))


def ranking(query: Sequence[float]) -> Nearest:
    field = field_of(len(query))
    return Nearest(field, Constant(tuple(query), field.type))


def part_type(width: int) -> NodeType:
    return NodeType("Part", {"shape": PropertyDef("shape", field_of(width).type)})


def run_for(runs: Runs, *exprs: Nearest) -> Run:
    run = runs.run("x")
    queries = {expr: query_vector(np.array(expr.query.value)) for expr in exprs}
    run.vectors = QueryVectors(queries)
    return run


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Table]:
    """The same rows in two fragments with an index over one of them, and without."""
    rows = vector_rows(SMALL, SMALL_WIDTH)
    parts = rows.slice(0, 200), rows.slice(200)
    return {
        is_indexed: vector_table(tmp_path_factory.mktemp("near"), *parts, indexed=int(is_indexed))
        for is_indexed in (True, False)
    }


@pytest.fixture(params=WAYS)
def runs(
    request: pytest.FixtureRequest, tables: dict[bool, Table], monkeypatch: pytest.MonkeyPatch
) -> Runs:
    capacity, exact_bytes, is_indexed = WAYS[request.param]
    monkeypatch.setattr(module, "EXACT_VECTOR_BYTES", Fixed("bytes", exact_bytes, ""))
    for name in ("_FEW_IN_MEMORY", "_SHARE_IN_MEMORY"):
        monkeypatch.setattr(module, name, 0)
    if exact_bytes == 0 or capacity == NOTHING:
        monkeypatch.setattr(module, "_few", lambda _: 0)
    return Runs(tables[is_indexed], part_type(SMALL_WIDTH), capacity)


def expected_distances(shapes: Sequence[Sequence[float] | None], query: object) -> np.ndarray:
    width = len(next(shape for shape in shapes if shape is not None))
    filled = [[0.0] * width if shape is None else shape for shape in shapes]
    return cosine_distances(np.array(filled, np.float32), np.array(query, np.float32))


def expected_numbers(distances: np.ndarray, count: int) -> set[int]:
    """The nearest rows; those that are as near as the last one, to the last few bits, as well."""
    present = np.sort(distances[~np.isnan(distances)])
    if not len(present):
        return set()
    last = present[min(count, len(present)) - 1]
    return set(np.flatnonzero(distances <= last + 1e-12).tolist())


numbers = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0])
queries = st.lists(numbers, min_size=SMALL_WIDTH, max_size=SMALL_WIDTH).filter(any)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    queries,
    st.integers(1, 400),
    st.none() | st.integers(0, 2**32 - 1),
    st.sampled_from([0.02, 0.5, 0.95]),
)
def test_every_way_finds_the_nearest_rows(
    runs: Runs, query: list[float], count: int, seed: int | None, share: float
) -> None:
    expr = ranking(query)
    allowed = None if seed is None else np.random.default_rng(seed).random(len(SMALL)) < share
    distances = expected_distances(SMALL, query)
    if allowed is not None:
        distances[~allowed] = np.nan

    found, scores = top_numbers(run_for(runs, expr), expr, allowed, count)

    assert set(found.tolist()) <= expected_numbers(distances, count)
    assert len(found) >= min(count, np.count_nonzero(~np.isnan(distances)))
    assert found.dtype == np.int32
    assert scores.tolist() == pytest.approx(distances[found].tolist(), abs=1e-12)
    assert scores.tolist() == sorted(scores.tolist())
    last = scores[-1] if len(scores) else 0.0
    exact = nearest_scores(run_for(runs, expr), expr, np.arange(len(SMALL), dtype=np.int32))
    ties = np.flatnonzero((exact == last) & ~np.isnan(distances))
    assert set(ties.tolist()) <= set(found.tolist())


def test_every_way_gives_the_same_bits(
    tables: dict[bool, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    expr = ranking([0.3, -0.7, 0.2])
    every = np.arange(len(SMALL), dtype=np.int32)
    values = set()
    for capacity, exact_bytes, is_indexed in WAYS.values():
        monkeypatch.setattr(module, "EXACT_VECTOR_BYTES", Fixed("bytes", exact_bytes, ""))
        runs = Runs(tables[is_indexed], part_type(SMALL_WIDTH), capacity)
        run = run_for(runs, expr)
        scores = nearest_scores(run, expr, every)
        single = [nearest_scores(run, expr, every[place : place + 1])[0] for place in (0, 7, 180)]
        assert [scores[0], scores[7], scores[180]] == single
        monkeypatch.setattr(module, "_few", lambda _: 0)
        top, found = top_numbers(run, expr, None, 20)
        assert scores[top].tolist() == found.tolist()
        values.add(scores.tobytes())
        monkeypatch.undo()
    assert len(values) == 1


def test_rows_of_a_match(runs: Runs) -> None:
    expr = ranking([1.0, 2.0, 0.5])
    run = run_for(runs, expr)
    places = np.array([5, -1, 250, 5, 310, 251, -1, 0], np.int32)
    distances = np.append(expected_distances(SMALL, [1.0, 2.0, 0.5]), np.nan)

    frame = Frame(len(places), {"x": places})

    expected = pytest.approx(distances[places].tolist(), abs=1e-12, nan_ok=True)
    assert rank_values(run, expr, frame, limit=2).tolist() == expected
    assert np.isnan(distances[[250, 251, 252]]).all()
    assert rank_ties(run, expr, frame, limit=2) is None


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_many_rows_of_the_same_nodes(
    runs: Runs, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PORTION_BYTES", 8 * SMALL_WIDTH * 64)
    expr = ranking([1.0, 2.0, 0.5])
    most = max(1, int(len(SMALL) * share))
    places = np.random.default_rng(1).integers(-1, most, 6_000).astype(np.int32)
    distances = np.append(expected_distances(SMALL, [1.0, 2.0, 0.5]), np.nan)

    scores = nearest_scores(run_for(runs, expr), expr, places)

    assert scores.tolist() == pytest.approx(distances[places].tolist(), abs=1e-12, nan_ok=True)


def test_nothing_is_near_to_nothing(runs: Runs) -> None:
    expr = ranking([0.0, 0.0, 0.0])
    run = run_for(runs, expr)

    assert np.isnan(nearest_scores(run, expr, np.arange(9, dtype=np.int32))).all()
    assert [len(part) for part in top_numbers(run, expr, None, 5)] == [0, 0]


def test_none_wanted_and_none_allowed(runs: Runs) -> None:
    expr = ranking([1.0, 0.0, 0.0])
    run = run_for(runs, expr)

    assert len(top_numbers(run, expr, None, 0)[0]) == 0
    assert len(top_numbers(run, expr, np.zeros(len(SMALL), np.bool_), 5)[0]) == 0
    assert len(nearest_scores(run, expr, np.zeros(0, np.int32))) == 0


def test_an_empty_table(tmp_path: Path) -> None:
    expr = ranking([1.0, 0.0])
    empty = new_table(tmp_path, vector_rows([[1.0, 0.0]], 2).schema)
    run = run_for(Runs(empty, part_type(2)), expr)

    assert len(top_numbers(run, expr, None, 3)[0]) == 0


@pytest.mark.parametrize("odd", [1e30, 3e38, 1e-30, 1e-44])
def test_very_long_and_very_short_vectors(
    tmp_path: Path, odd: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_few", lambda _: 0)
    expr = ranking([1.0, 0.2])
    shapes = [[odd, odd / 4], [1.0, 1.0], [0.0, 0.0], [-odd, odd], [1.0, 0.1], None]
    run = run_for(Runs(vector_table(tmp_path, vector_rows(shapes, 2)), part_type(2)), expr)

    found, scores = top_numbers(run, expr, None, 4)

    distances = expected_distances(shapes, [1.0, 0.2])
    assert set(found.tolist()) == {0, 1, 3, 4}
    assert scores.tolist() == pytest.approx(distances[found].tolist(), abs=1e-12)
    assert scores.tolist() == sorted(scores.tolist())


@pytest.mark.parametrize("nothing", [math.nan, math.inf, None])
def test_vectors_with_something_else_than_numbers(
    tmp_path: Path, nothing: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take no part, and do not get in the way of those that do."""
    monkeypatch.setattr(module, "_few", lambda _: 0)
    expr = ranking([1.0, 0.2])
    shapes = [[nothing, 1.0], [1.0, 1.0], [1.0, nothing], [-1.0, 0.0], None, [1.0, 0.1]]
    run = run_for(Runs(vector_table(tmp_path, vector_rows(shapes, 2)), part_type(2)), expr)

    for count in (1, 2, 3, 4):
        assert top_numbers(run, expr, None, count)[0].tolist() == [5, 1, 3][:count]


def test_every_row_has_a_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_few", lambda _: 0)
    shapes = anywhere(500, 4)
    expr = ranking([1.0, 0.2, 0.5, -1.0])
    run = run_for(Runs(vector_table(tmp_path, vector_rows(shapes, 4)), part_type(4)), expr)
    distances = cosine_distances(shapes, np.float32([1.0, 0.2, 0.5, -1.0]))

    for allowed in (None, distances > 0.5):
        kept = distances if allowed is None else np.where(allowed, distances, 9)
        found, _ = top_numbers(run, expr, allowed, 20)
        assert found.tolist() == np.argsort(kept)[:20].tolist()


def test_the_same_vector_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them tie: an index can name some of them only."""
    monkeypatch.setattr(module, "EXACT_VECTOR_BYTES", Fixed("bytes", 0, ""))
    monkeypatch.setattr(module, "_FEW_STORED", 300)
    shapes = np.concatenate([np.tile(np.float32([1, 2]), (900, 1)), anywhere(300, 2)])
    expr = ranking([1.0, 2.0])
    table = vector_table(tmp_path, vector_rows(shapes, 2), indexed=1)
    run = run_for(Runs(table, part_type(2)), expr)

    found, scores = top_numbers(run, expr, None, 5)

    assert set(range(900)) <= set(found.tolist())
    assert len(set(scores.tolist())) == 1


# Through an index of many vectors

WIDTH = 16
COUNT = 100_000


@pytest.mark.parametrize("make", [clustered, anywhere])
def test_the_index_finds_nearly_all_of_the_nearest(
    tmp_path: Path, make: Callable[[int, int], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a few rows, of a third of them, of those far away, and of rows not indexed yet."""
    shapes = make(COUNT, WIDTH)
    rows = vector_rows(shapes, WIDTH)
    indexed = COUNT * 9 // 10
    table = vector_table(tmp_path, rows.slice(0, indexed), rows.slice(indexed), indexed=1)
    monkeypatch.setattr(module, "EXACT_VECTOR_BYTES", Fixed("bytes", 0, ""))
    runs = Runs(table, part_type(WIDTH), NOTHING)
    chance = np.random.default_rng(4).random(COUNT)
    shares: dict[str, list[float]] = {}
    for query in queries_for(shapes, 4):
        expr = ranking(query.tolist())
        run = run_for(runs, expr)
        distances = cosine_distances(shapes, query)
        masks = {
            "all": None,
            "few": chance < 0.01,
            "third": chance < 0.33,
            "far": distances > np.median(distances),
        }
        for name, allowed in masks.items():
            kept = distances if allowed is None else np.where(allowed, distances, 9)
            best = set(np.argpartition(kept, 10)[:10].tolist())
            found, _ = top_numbers(run, expr, allowed, 10)
            shares.setdefault(name, []).append(len(best & set(found.tolist())) / 10)
    assert {name: float(np.mean(found)) >= 0.98 for name, found in shares.items()} == dict.fromkeys(
        shares, True
    )


# Limits


def test_a_stopped_query_stops(runs: Runs) -> None:
    expr = ranking([1.0, 0.0, 0.0])
    cancellation = Cancellation()
    cancellation.cancel()
    run = run_for(runs, expr)
    run.guard = Guard(budget=2**30, cancellation=cancellation)

    with pytest.raises(QueryCancelled):
        top_numbers(run, expr, None, 3)


def test_memory_is_asked_for(tables: dict[bool, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_few", lambda _: 0)
    expr = ranking([1.0, 0.0, 0.0])
    run = run_for(Runs(tables[False], part_type(SMALL_WIDTH)), expr)
    run.guard = Guard(budget=100)

    with pytest.raises(BudgetExceeded, match=r"nearest\(shape\)"):
        top_numbers(run, expr, None, 3)
