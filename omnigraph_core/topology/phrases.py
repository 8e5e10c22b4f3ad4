"""Phrases: the words of a query that stand together, in that order, in the texts of an index.

Stems come in, a mask by row goes out. All words count, stop words too. The rows to look at come
from the rarest words; only where no word of the phrase is indexed are all texts gone through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.interruption import pause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.topology.word_index import WordIndex

_FEW: Final = 0.1
"""The part of all rows up to which gathering their words is cheaper than going through all."""


def rows_with_phrase(index: WordIndex, stems: Sequence[str]) -> np.ndarray:
    """Which rows have these stems one after another; none has no stems."""
    is_found = np.zeros(index.count, np.bool_)
    texts = []
    for stem in stems:
        pause()
        texts.append(index.lexicon.find(stem))
    if not texts or min(texts) < 0:
        return is_found
    rows = _candidates(index, texts)
    if rows is None or len(rows) > _FEW * index.count:
        stream, offsets = index.stream, index.stream_offsets
        is_found[_matching(index, stream, offsets, texts)] = True
    else:
        stream, offsets = _gathered(index, rows)
        is_found[rows[_matching(index, stream, offsets, texts)]] = True
    return is_found


def _candidates(index: WordIndex, texts: Sequence[int]) -> np.ndarray | None:
    """Rows that have every indexed word of the phrase; None if it has none."""
    is_unsure = np.zeros(len(index.lexicon), np.bool_)
    # The same stem may also come from words that are not indexed: those rows must not be missed.
    is_unsure[index.form_stem[~index.form_is_indexed]] = True
    lists = [index.postings(text)[0] for text in set(texts) if not is_unsure[text]]
    if not lists:
        return None
    lists.sort(key=len)
    rows = lists[0]
    for other in lists[1:]:
        places = np.searchsorted(other, rows)
        rows = rows[other.take(places, mode="clip") == rows] if len(other) else other
    return rows


def _gathered(index: WordIndex, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The words of some rows, one after another, and where each row begins."""
    starts = index.stream_offsets[rows]
    sizes = index.stream_offsets[rows + 1] - starts
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    return index.stream.take(places), offsets


def _matching(
    index: WordIndex, stream: np.ndarray, offsets: np.ndarray, texts: Sequence[int]
) -> np.ndarray:
    """The texts of a stream that have the phrase within them."""
    last = len(stream) - len(texts) + 1
    if last <= 0:
        return np.empty(0, np.int64)
    places = np.flatnonzero((index.form_stem == texts[0]).take(stream[:last]))
    for step, text in enumerate(texts[1:], start=1):
        pause()
        places = places[index.form_stem.take(stream.take(places + step)) == text]
    found = np.searchsorted(offsets, places, side="right") - 1
    is_within = places + len(texts) <= offsets[found + 1]
    matching: np.ndarray = found[is_within]
    return matching
