"""The pure parts of ranking: the best of scored rows, and vectors to look for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.embedding.config import EmbedConfig, Provider
from omnigraph_core.embedding.embedder import Embedder, Task
from omnigraph_core.exec.best import Best, best_of
from omnigraph_core.exec.query_vectors import QueryVectors, query_vector
from omnigraph_core.exec.vectors import as_matrix
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.values import Values
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import Nearest
from omnigraph_core.schema.build import compile_schema
from tests.support.oracle import NOW

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), max_size=12)


def listed(best: Best) -> list[tuple[float, int]]:
    return list(zip(best.scores.tolist(), best.numbers.tolist(), strict=True))


def expected_best(scores: list[float], count: int) -> list[tuple[float, int]]:
    ranked = sorted((score, number) for number, score in enumerate(scores) if score == score)
    return [item for item in ranked if item[0] <= ranked[min(count, len(ranked)) - 1][0]]


@given(SCORES, st.integers(1, 14))
def test_the_best_include_all_that_tie_for_the_last_place(scores: list[float], count: int) -> None:
    best = best_of(np.arange(len(scores)), np.array(scores, np.float64), count)

    assert listed(best) == expected_best(scores, count)
    assert best.numbers.dtype == np.int32


@given(SCORES, st.integers(1, 5), st.integers(0, 12))
def test_the_best_of_parts_are_the_best_of_all(scores: list[float], count: int, cut: int) -> None:
    given_scores, numbers = np.array(scores, np.float64), np.arange(len(scores))
    parts = [
        best_of(numbers[part], given_scores[part], count) for part in (slice(cut), slice(cut, None))
    ]

    joined = Best.nothing().joined(parts[0], count).joined(parts[1], count)

    assert listed(joined) == expected_best(scores, count)


def test_a_vector_to_look_for_has_the_precision_of_stored_ones() -> None:
    vector = query_vector(np.array([0.1, -0.2]))

    assert vector is not None
    assert vector.values.tolist() == [float(np.float32(0.1)), float(np.float32(-0.2))]
    assert vector.norm == pytest.approx(np.hypot(0.1, 0.2), rel=1e-7)
    assert np.vecdot(vector.unit, vector.unit) == pytest.approx(1, rel=1e-6)


def test_without_a_direction_there_is_nothing_to_look_for() -> None:
    assert query_vector(np.array([0, 0, 0])) is None
    assert query_vector(np.array([1e-30, 0, 0])) is not None


def test_a_slice_of_vectors_with_nulls() -> None:
    vectors = pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.float32(), 2))

    values, is_valid = as_matrix(vectors.slice(1, 2))

    assert is_valid is not None
    assert is_valid.tolist() == [False, True]
    assert values[1].tolist() == [3, 4]
    assert as_matrix(vectors.slice(2))[1] is None


# What a query looks for

CATALOG = compile_schema("""
node Article {
    title: String
    body: String?
    about: Vector(4)? @embed(title)
    mood: Vector(4)? @embed(body, model="small")
    shape: Vector(3)?
}
""")


class Recording(Embedder):
    """Makes vectors of texts without a provider, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(lambda: EmbedConfig(Provider.MOCK, "mock"))
        self.asked: list[tuple[list[str], int, Task, str | None]] = []

    def embed(self, texts, *, dimension, task, model=None, on_done=None):  # type: ignore[no-untyped-def]
        self.asked.append((list(texts), dimension, task, model))
        return super().embed(texts, dimension=dimension, task=task, model=model, on_done=on_done)


def compiled(text: str) -> QueryIR:
    ir = compile_one(text, CATALOG).ir
    assert isinstance(ir, QueryIR)
    return ir


def nearest_in(ir: QueryIR) -> list[Nearest]:
    exprs = [*(key.expr for key in ir.order_by), *(column.expr for column in ir.columns)]
    return [term for term in iter_terms(exprs) if isinstance(term, Nearest)]


def test_texts_of_one_model_are_embedded_together() -> None:
    ir = compiled("""
        query q($a: String, $b: String) {
            match { $x: Article }
            return {
                nearest($x.about, $a) as one, nearest($x.about, $b) as two,
                nearest($x.mood, $a) as three, nearest($x.about, "words") as four
            }
            order { rrf(nearest($x.about, $a), nearest($x.mood, $b)) }
            limit 3
        }""")
    embedder = Recording()

    vectors = QueryVectors.of(ir, Values(NOW, {"a": "words", "b": "others"}), CATALOG, embedder)

    assert sorted(embedder.asked, key=str) == [
        (["others", "words"], 4, Task.QUERY, "small"),
        (["words", "others"], 4, Task.QUERY, None),
    ]
    found = [vectors.vector(term) for term in nearest_in(ir)]
    assert all(vector is not None for vector in found)
    by_text = {vector.values.tobytes() for vector in found if vector is not None}
    assert len(by_text) == 2


def test_vectors_need_no_embedding() -> None:
    ir = compiled("""
        query q($v: Vector(3), $none: Vector(3)?, $text: String?) {
            match { $x: Article }
            return {
                nearest($x.shape, $v) as one, nearest($x.shape, [0, 0, 2]) as two,
                nearest($x.shape, [0, 0, 0]) as three, nearest($x.shape, $none) as four,
                nearest($x.about, $text) as five, nearest($x.about, "  ") as six
            }
        }""")
    embedder = Recording()
    params = {"v": (3.0, 4.0, 0.0), "none": None, "text": None}

    vectors = QueryVectors.of(ir, Values(NOW, params), CATALOG, embedder)

    assert embedder.asked == []
    found = [vectors.vector(term) for term in nearest_in(ir)]
    assert [None if item is None else (item.norm, item.values.tolist()) for item in found] == [
        (5.0, [3.0, 4.0, 0.0]),
        (2.0, [0.0, 0.0, 2.0]),
        None,
        None,
        None,
        None,
    ]


def test_a_query_without_ranking_asks_for_nothing() -> None:
    ir = compiled("query q() { match { $x: Article } return { $x.title, count($x) as n } }")
    embedder = Recording()

    QueryVectors.of(ir, Values(NOW, {}), CATALOG, embedder)

    assert embedder.asked == []
