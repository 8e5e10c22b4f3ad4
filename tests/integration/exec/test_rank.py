"""Rankings of the rows of a match: by words, and of two rankings made one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.constants import RRF_K
from omnigraph_core.errors import ParameterError
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.query_vectors import QueryVectors, query_vector
from omnigraph_core.exec.rank import rank_ties, rank_values, top_numbers
from omnigraph_core.exec.vectors import nearest_scores
from omnigraph_core.query.typed import Bm25, Constant, Nearest, ParamValue, PropertyValue, Rrf
from omnigraph_core.schema.catalog import NodeType, PropertyDef
from omnigraph_core.types import I64, STRING, PropType, Scalar
from tests.support.dense_runs import NOTHING, PLENTY, Runs, stored
from tests.support.examples import examples

if TYPE_CHECKING:
    from omnigraph_core.exec.context import Run
    from omnigraph_core.query.typed import RankExpr
    from omnigraph_core.values import Value

VECTOR = PropType(Scalar.VECTOR, dimension=2, is_nullable=True)
ARTICLE = NodeType(
    "Article",
    {
        "text": PropertyDef("text", STRING.nullable()),
        "about": PropertyDef("about", VECTOR),
        "mood": PropertyDef("mood", VECTOR),
    },
)
TEXT = PropertyValue("x", "text", STRING.nullable())
ABOUT = PropertyValue("x", "about", VECTOR)
MOOD = PropertyValue("x", "mood", VECTOR)
WORDS = ("bolt", "nut", "washer", "bolt bolt nut", "nut washer", "spring", None)


def article_rows(count: int = 40) -> pa.Table:
    """Few texts and few directions: many articles are equally good. Ids run against the numbers."""
    chance = np.random.default_rng(2)
    about = [[1.0, float(chance.integers(0, 5))] for _ in range(count)]
    vectors = pa.array(
        [vector if place % 9 else None for place, vector in enumerate(about)], _type()
    )
    moods = pa.array([[float(chance.integers(0, 4)), 1.0] for _ in range(count)], _type())
    texts = pa.array([WORDS[place % len(WORDS)] for place in range(count)], pa.utf8())
    ids = pa.array([f"a{count - place:03}" for place in range(count)], pa.utf8())
    columns = {"id": ids, "text": texts, "about": vectors, "mood": moods}
    fields = [pa.field(name, array.type, nullable=name != "id") for name, array in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def _type() -> pa.DataType:
    return pa.list_(pa.field("item", pa.float32()), 2)


ROWS = article_rows()
IDS = ROWS.column("id").to_pylist()


@pytest.fixture(scope="module", params=[PLENTY, NOTHING], ids=["kept", "too large"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(stored(tmp_path_factory.mktemp("rank"), ROWS), ARTICLE, request.param)


def near(field: PropertyValue, query: tuple[float, float]) -> Nearest:
    return Nearest(field, Constant(query, VECTOR))


def words(query: str) -> Bm25:
    return Bm25(TEXT, Constant(query, STRING))


def run_of(runs: Runs, expr: RankExpr, params: dict[str, Value] | None = None) -> Run:
    run = runs.run("x", params=params)
    arms = expr.arms if isinstance(expr, Rrf) else (expr,)
    run.vectors = QueryVectors(
        {
            arm: query_vector(np.array(arm.query.value))
            for arm in arms
            if isinstance(arm, Nearest) and isinstance(arm.query, Constant)
        }
    )
    return run


def frame_of(numbers: list[int]) -> Frame:
    return Frame(len(numbers), {"x": np.array(numbers, np.int32)})


# bm25


def test_the_scores_of_rows_are_those_of_their_texts(runs: Runs) -> None:
    expr = words("nut")
    run = run_of(runs, expr)
    hits, scores = run.graph.words(runs.dense, "text", run.guard.check).bm25("nut")
    by_number = dict(zip(hits.tolist(), scores.tolist(), strict=True))
    numbers = [*range(40), 3, -1, 6, 3]

    many = rank_values(run, expr, frame_of(numbers), limit=1)
    few = [rank_values(run, expr, frame_of([number]), limit=1)[0] for number in numbers]

    expected = [by_number.get(number, np.nan) for number in numbers]
    assert many.tolist() == pytest.approx(expected, nan_ok=True)
    assert few == pytest.approx(expected, nan_ok=True)
    assert set(by_number) == {n for n in range(40) if "nut" in (WORDS[n % 7] or "")}


def test_the_best_texts_among_those_allowed(runs: Runs) -> None:
    expr = words("bolt nut")
    run = run_of(runs, expr)
    allowed = np.arange(40) % 2 == 0
    values = rank_values(run, expr, frame_of(list(range(40))), limit=1)
    values[~allowed] = np.nan

    numbers, scores = top_numbers(run, expr, allowed, 3)

    third = np.sort(values[~np.isnan(values)])[-3]
    assert sorted(numbers.tolist()) == np.flatnonzero(values >= third).tolist()
    assert scores.tolist() == values[numbers].tolist() == sorted(scores.tolist(), reverse=True)
    assert len(top_numbers(run, expr, None, 0)[0]) == 0


def test_no_text_to_look_for(runs: Runs) -> None:
    expr = Bm25(TEXT, ParamValue("q", STRING.nullable()))
    run = run_of(runs, expr, {"q": None})

    assert np.isnan(rank_values(run, expr, frame_of([0, 1, 2]), limit=1)).all()
    assert len(top_numbers(run, expr, None, 5)[0]) == 0


# rrf


def arm_order(run: Run, arm: Nearest | Bm25, entities: set[int], limit: int) -> list[int]:
    """What an arm ranks, best first."""
    numbers = sorted(entities)
    if isinstance(arm, Nearest):
        values = nearest_scores(run, arm, np.array(numbers, np.int32))
    else:
        values = -rank_values(run, arm, frame_of(numbers), limit=1)
    scored = zip(values.tolist(), (IDS[number] for number in numbers), numbers, strict=True)
    ranked = [number for value, _, number in sorted(s for s in scored if s[0] == s[0])]
    return ranked[:limit] if isinstance(arm, Nearest) else ranked


def expected_ranking(
    run: Run, expr: Rrf, entities: set[int], limit: int, k: int
) -> dict[int, float]:
    """Entities best first with their scores, in dictionaries and loops."""
    orders = [arm_order(run, arm, entities, limit) for arm in expr.arms]
    scores: dict[int, float] = {}
    for order in orders:
        for rank, number in enumerate(order, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (k + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))  # ties stay as they were met


vectors = st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.5, 1.0, 3.0]))
arms = st.one_of(
    vectors.map(lambda query: near(ABOUT, query)),
    vectors.map(lambda query: near(MOOD, query)),
    st.sampled_from(["nut", "bolt washer", "spring", "rivet"]).map(words),
)


@settings(max_examples=examples(400))
@given(
    st.tuples(arms, arms),
    st.lists(st.integers(-1, 39), max_size=60),
    st.integers(0, 30),
    st.sampled_from([1, 60]),
)
def test_two_rankings_made_one(
    runs: Runs, pair: tuple[Nearest | Bm25, Nearest | Bm25], numbers: list[int], limit: int, k: int
) -> None:
    expr = Rrf(pair, Constant(k, I64))
    run, frame = run_of(runs, expr), frame_of(numbers)

    values = rank_values(run, expr, frame, limit=limit)
    ties = rank_ties(run, expr, frame, limit=limit)

    expected = expected_ranking(run, expr, set(numbers) - {-1}, limit, k)
    absent = float("nan")
    assert values.tolist() == pytest.approx([expected.get(n, absent) for n in numbers], nan_ok=True)
    assert ties is not None
    reached = {n: (-v, t) for n, v, t in zip(numbers, values, ties, strict=True) if v == v}
    assert sorted(reached, key=lambda number: reached[number]) == list(expected)


def test_equals_of_both_arms_come_as_the_first_arm_has_them(runs: Runs) -> None:
    """First and second in one arm, second and first in the other."""
    expr = Rrf((near(MOOD, (0.0, 1.0)), near(MOOD, (3.0, 1.0))), Constant(60, I64))
    moods = ROWS.column("mood").to_pylist()
    numbers = [moods.index([0.0, 1.0]), moods.index([3.0, 1.0])]
    for order in (numbers, numbers[::-1]):
        run, frame = run_of(runs, expr), frame_of(order)
        values = rank_values(run, expr, frame, limit=10)
        ties = rank_ties(run, expr, frame, limit=10)
        assert ties is not None
        assert values[0] == values[1] == 1 / 61 + 1 / 62
        assert order[int(np.argmin(ties))] == numbers[0]


def test_later_frames_keep_the_values_of_the_whole_match(runs: Runs) -> None:
    expr = Rrf((near(ABOUT, (1.0, 2.0)), words("nut")), Constant(60, I64))
    run = run_of(runs, expr)
    whole = rank_values(run, expr, frame_of(list(range(40))), limit=5)

    some = rank_values(run, expr, frame_of([4, 1, 33]), limit=5)

    assert some.tolist() == pytest.approx(whole[[4, 1, 33]].tolist(), nan_ok=True)


def test_the_constant_of_a_parameter(runs: Runs) -> None:
    def best(value: int | None) -> float:
        k = ParamValue("k", I64.nullable())
        expr = Rrf((words("nut"), words("nut")), k)
        run = run_of(runs, expr, {"k": value})
        return float(np.nanmax(rank_values(run, expr, frame_of(list(range(40))), limit=5)))

    assert best(9) == 2 / 10
    assert best(None) == 2 / (RRF_K.value + 1)
    with pytest.raises(ParameterError, match=r"\$k: the constant of `rrf` is at least 1, found 0"):
        best(0)
