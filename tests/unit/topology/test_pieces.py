"""Texts in pieces: where they are cut, and that equal pieces have equal numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.topology import pieces
from omnigraph_core.topology.pieces import cut_texts
from tests.support.cases import each

if TYPE_CHECKING:
    import pytest


def cut(*batches: pa.Array) -> list[list[str] | None]:
    """The pieces of each text, None for null."""
    cuts, distinct = cut_texts(batches, lambda: None)
    listed = distinct.to_pylist()
    assert len(set(listed)) == len(listed)
    found: list[list[str] | None] = []
    for item in cuts:
        for place in range(len(item.offsets) - 1):
            numbers = item.numbers[item.offsets[place] : item.offsets[place + 1]]
            is_null = item.is_null is not None and item.is_null[place]
            found.append(None if is_null else [listed[number] for number in numbers])
            assert not (is_null and len(numbers))
    return found


def test_cuts_are_at_blanks_and_punctuation_of_ascii() -> None:
    texts = pa.array(["The cat-flap", "sat", "", None, "  On\tthe\x00MAT. ", "a_b é—É", "9x"])
    assert cut(texts) == [
        ["the", "cat", "flap"],
        ["sat"],
        [],
        None,
        ["on", "the", "mat"],
        ["a", "b", "é—É"],
        ["9x"],
    ]


def test_a_text_ends_its_last_piece() -> None:
    assert cut(pa.array(["ab", "cd", "", "ef"])) == [["ab"], ["cd"], [], ["ef"]]


def test_slices_and_bytes_behind_nulls_do_not_show() -> None:
    texts = pa.array(["one two", "three", "four five", "six"])
    assert cut(texts.slice(1, 2)) == [["three"], ["four", "five"]]
    mask = pa.array([True, False, True, True]).buffers()[1]
    hidden = pa.StringArray.from_buffers(4, texts.buffers()[1], texts.buffers()[2], mask)
    assert cut(hidden) == [["one", "two"], None, ["four", "five"], ["six"]]


@each("size", [1, 5, 12, 100])
def test_portions_share_their_numbers(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_PORTION_BYTES", size)
    texts = ["one two", "two", None, "", "three two one and four", "one"]
    expected = [None if text is None else text.split() for text in texts]
    assert cut(pa.array(texts)) == expected
    assert cut(pa.array(texts[:2]), pa.array([], pa.string()), pa.array(texts[2:])) == expected
    assert cut() == []
