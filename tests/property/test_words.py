"""Words found piece by piece are the words of the whole text, in every script."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.storage.words import words_of
from omnigraph_core.topology.word_index import WordIndex, empty_index, extended
from tests.support import text_oracle
from tests.support.examples import examples

ODD = (
    "\u0301\u00a0\u2014\u2019\u200d\u3000\ufeff\u0345\u1e9e\u0130\u03a3\ufb01\u00b2\u00bd\u0661\u216b"
    "\U0001d7d8\U0001f600\u0e33\uac00\u4e2d"
)
"""Marks, blanks, letters and figures that are not what they look like."""
LETTERS = st.sampled_from([*"aAzZ09 _-.'\x00\t\n", *ODD, "The ", "running ", "of ", "y" * 20])
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=60),
    st.lists(LETTERS, max_size=40).map("".join),
)


def words_in(index: WordIndex, row: int) -> list[tuple[str, str, bool]]:
    texts = index.lexicon.texts().to_pylist()
    start, stop = index.stream_offsets[row], index.stream_offsets[row + 1]
    return [
        (texts[index.form_raw[form]], texts[index.form_stem[form]], index.form_is_indexed[form])
        for form in index.stream[start:stop]
    ]


def expected(text: str | None) -> list[tuple[str, str, bool]]:
    found = text_oracle.analyse(text) if text is not None else ()
    return [(word.raw, word.stem, word.is_indexed) for word in found]


@given(st.lists(st.none() | TEXTS, max_size=12), st.lists(st.none() | TEXTS, max_size=6))
@settings(max_examples=examples(200))
def test_texts_in_pieces_have_the_words_of_whole_texts(
    texts: list[str | None], added: list[str | None]
) -> None:
    index = extended(empty_index(), [pa.array(texts, pa.string())], lambda: None)
    grown = extended(index, [pa.array(added, pa.string())], lambda: None)
    assert [words_in(index, row) for row in range(len(texts))] == list(map(expected, texts))
    every = [*texts, *added]
    assert [words_in(grown, row) for row in range(len(every))] == list(map(expected, every))


@given(TEXTS)
@settings(max_examples=examples(200))
def test_a_query_has_the_words_of_a_text(text: str) -> None:
    assert [(word.raw, word.stem, word.is_indexed) for word in words_of(text)] == expected(text)
