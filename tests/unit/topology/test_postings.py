"""Words of texts as arrays: what each search finds, and that growing changes no answer."""

from __future__ import annotations

import random
from dataclasses import astuple
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import ParameterError
from omnigraph_core.query.typed import TextFunction
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.word_index import WordIndex, empty_index, extended, selected_rows
from omnigraph_core.topology.word_search import Postings, WordPart
from tests.support import text_oracle
from tests.support.cases import each
from tests.support.numbered import all_rows, rows_but

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = (
    "The state of the art in bolts",
    "A state-of-the-art bolt: stainless",
    "state the art of it",
    None,
    "",
    "art of the state",
    "Grüße aus Köln — naïve façades",
    "the the the",
    "bolts bolted bolting, bolt",
    f"a {'x' * 60} word",
    "ŠKODA\u2019s engine",
)
WORDS = (
    *("bolt", "bolts", "nut", "nuts", "the", "of", "and", "or", "not", "state", "art", "steel"),
    *("running", "run", "naïve", "naive", "façade", "x1", "x2", "straße", "strasse", "Ωmega"),
)


def nothing() -> None:
    """What is asked between portions."""


def index_of(texts: Sequence[str | None]) -> WordIndex:
    return extended(empty_index(), [pa.array(texts, pa.string())], nothing)


def postings(index: WordIndex) -> Postings:
    return Postings((WordPart(index),), all_rows(index.count), ByteCache(1 << 24), "sample")


def found(words: Postings, function: str, query: str, edits: int = 2) -> list[int]:
    mask = words.matching(TextFunction(function), query, edits)
    assert mask.dtype == np.bool_
    return np.flatnonzero(mask).tolist()


@each(
    ("function", "query", "rows"),
    [
        ("search", "bolts", [0, 1, 8]),
        ("search", "BOLTING steel", [0, 1, 8]),
        ("search", "the", []),
        ("search", "of the art", [0, 1, 2, 5]),
        ("search", "koln", [6]),
        ("search", "facade", [6]),
        ("search", "x" * 60, []),
        ("search", "", []),
        ("match_text", "state of the art", [0, 1]),
        ("match_text", "States OF the arts", [0, 1]),
        ("match_text", "the", [0, 1, 2, 5, 7]),
        ("match_text", "the the", [7]),
        ("match_text", "the the the the", []),
        ("match_text", "bolts A state", []),
        ("match_text", "bolt bolt bolt bolt", [8]),
        ("match_text", f"a {'x' * 60} word", [9]),
        ("match_text", "a word", []),
        ("match_text", " -- ", []),
        ("match_text", "unheard of", []),
        ("fuzzy", "stainles", [1]),
        ("fuzzy", "the", []),
        ("fuzzy", "koln", [1, 6, 8]),
        ("fuzzy", "kolnische", []),
    ],
)
def test_what_is_found(function: str, query: str, rows: list[int]) -> None:
    assert found(postings(index_of(TEXTS)), function, query) == rows
    told = [text_oracle.is_match(function, text, query) for text in TEXTS]
    assert np.flatnonzero(told).tolist() == rows


@each("edits", [0, 1, 3, 40, 1_000_000])
def test_fuzzy_matches_by_edits(edits: int) -> None:
    words = postings(index_of(TEXTS))
    for query in ("bolt", "Statt engin", "x" * 39, "Ωmega"):
        told = [text_oracle.is_match("fuzzy", text, query, edits) for text in TEXTS]
        assert found(words, "fuzzy", query, edits) == np.flatnonzero(told).tolist()


def test_fewer_than_zero_edits_are_refused() -> None:
    words = postings(index_of(TEXTS))
    with pytest.raises(ParameterError, match="zero edits or more, not -1"):
        words.matching(TextFunction.FUZZY, "bolt", -1)
    assert found(words, "search", "bolt", -1) == [0, 1, 8]


def test_scores_are_those_of_the_formula() -> None:
    words = postings(index_of(TEXTS))
    for query in ("bolt", "bolt bolts state", "the", "", "art steel state bolts", "none"):
        rows, scores = words.bm25(query)
        expected = text_oracle.bm25(TEXTS, query)
        assert rows.tolist() == sorted(expected)
        assert rows.dtype == np.int32
        assert scores == pytest.approx([expected[row] for row in sorted(expected)], rel=1e-12)


def test_scores_of_few_rows_among_many_and_of_many_are_alike() -> None:
    """Rare words are added up in a list, frequent ones by row."""
    texts = [f"common word{number % 50}" for number in range(2_000)]
    words = postings(index_of(texts))
    for query in ("word7 word9 word11", "common word7"):
        rows, scores = words.bm25(query)
        expected = text_oracle.bm25(texts, query)
        assert rows.tolist() == sorted(expected)
        assert scores == pytest.approx([expected[row] for row in sorted(expected)], rel=1e-12)


def test_answers_are_kept_and_cannot_be_written_to() -> None:
    words = postings(index_of(TEXTS))
    mask = words.matching(TextFunction.SEARCH, "bolt", 0)
    assert words.matching(TextFunction.SEARCH, "bolt", 0) is mask
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = False
    rows, scores = words.bm25("bolt")
    assert not rows.flags.writeable
    assert not scores.flags.writeable


@each("texts", [[], [None], ["", None], ["the", ""]])
def test_nothing_to_find(texts: list[str | None]) -> None:
    words = postings(index_of(texts))
    for function in ("search", "match_text", "fuzzy"):
        assert found(words, function, "bolt") == []
    assert words.bm25("bolt")[0].tolist() == []


def some_texts(chance: random.Random, count: int) -> list[str | None]:
    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(0, 8)))

    return [None if chance.random() < 0.1 else text() for _ in range(count)]


def check_answers(index: WordIndex, texts: Sequence[str | None], chance: random.Random) -> None:
    words = postings(index)
    assert index.is_whole
    assert index.lengths.tolist() == [
        -1 if text is None else len(text_oracle.indexed(text_oracle.analyse(text)))
        for text in texts
    ]
    for _ in range(6):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 3)))
        edits = chance.randint(0, 3)
        for function in ("search", "match_text", "fuzzy"):
            told = [text_oracle.is_match(function, text, query, edits) for text in texts]
            assert found(words, function, query, edits) == np.flatnonzero(told).tolist()
        expected = text_oracle.bm25(texts, query)
        rows, scores = words.bm25(query)
        assert rows.tolist() == sorted(expected)
        assert scores == pytest.approx([expected[row] for row in sorted(expected)], rel=1e-12)


@each("seed", range(12))
def test_an_index_that_grew_and_lost_rows_answers_like_a_new_one(seed: int) -> None:
    chance = random.Random(seed)
    texts = some_texts(chance, chance.randint(0, 60))
    index = index_of(texts)
    check_answers(index, texts, chance)
    for _ in range(3):
        is_kept = [chance.random() < 0.8 for _ in texts]
        index = selected_rows(index, np.array(is_kept, np.bool_))
        texts = [text for text, stays in zip(texts, is_kept, strict=True) if stays]
        check_answers(index, texts, chance)
        added = some_texts(chance, chance.randint(0, 20))
        half = len(added) // 2
        batches = [pa.array(part, pa.string()) for part in (added[:half], added[half:])]
        index = extended(index, batches, nothing)
        texts = [*texts, *added]
        check_answers(index, texts, chance)


@each("seed", range(8))
def test_words_in_parts_answer_like_those_of_one_index(seed: int) -> None:
    """Rows that came later are in a second part; some rows of both are gone, some never were."""
    chance = random.Random(seed)
    texts = some_texts(chance, 60)
    later = sorted(chance.sample(range(30, 60), 20))
    unseen = [number for number in range(30, 60) if number not in later]
    gaps = sorted({*unseen, *chance.sample(range(60), chance.randint(0, 15))})
    if seed % 2:
        first = WordPart(index_of(texts[:30]))
    else:
        first = WordPart(index_of(texts[:30:2]), np.arange(0, 30, 2, dtype=np.int32))
        gaps = sorted({*gaps, *range(1, 30, 2)})
    second = WordPart(index_of([texts[number] for number in later]), np.array(later, np.int32))
    words = Postings((first, second), rows_but(60, gaps), ByteCache(1 << 24), "sample")
    live = [number for number in range(60) if number not in gaps]
    left = [texts[number] for number in live]
    for _ in range(6):
        query = " ".join(chance.choices(WORDS, k=2))
        for function in ("search", "match_text", "fuzzy"):
            told = [text_oracle.is_match(function, text, query, 1) for text in left]
            expected = [number for number, hit in zip(live, told, strict=True) if hit]
            assert found(words, function, query, 1) == expected
        scores = text_oracle.bm25(left, query)
        rows, values = words.bm25(query)
        assert rows.tolist() == [live[place] for place in sorted(scores)]
        assert values == pytest.approx([scores[place] for place in sorted(scores)], rel=1e-12)
        assert astuple(words.statistics(query)) == text_oracle.statistics(left, query)


def test_an_index_survives_being_taken_apart() -> None:
    index = index_of(TEXTS)
    again = WordIndex.of_arrays(index.arrays())
    assert again.is_whole
    check_answers(again, TEXTS, random.Random(1))
    assert not WordIndex.of_arrays({**index.arrays(), "stream": index.stream[1:]}).is_whole
    assert not WordIndex.of_arrays({**index.arrays(), "text_order": index.stream}).is_whole


def test_many_new_words_and_few_are_put_in_order_alike() -> None:
    """A few texts are put in their places, many are sorted with all others."""
    many = [f"w{number * 7919 % 3_001}x" for number in range(3_000)]
    index = index_of(many)
    few = extended(index, [pa.array(["w2x aardvark zz w9999", "w1500xx"])], nothing)
    listed = few.lexicon.texts().to_pylist()
    assert [listed[number] for number in few.lexicon.order] == sorted(listed)
    assert [few.lexicon.find(text) for text in listed] == list(range(len(listed)))
    assert few.lexicon.find("w") == few.lexicon.find("zzz") == -1


def test_a_long_analysis_can_be_stopped() -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise InterruptedError

    texts = pa.array([f"word{number}" * 200 for number in range(6_000)])
    with pytest.raises(InterruptedError):
        extended(empty_index(), [texts], check)
