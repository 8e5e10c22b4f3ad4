"""Text becomes words by Lance's own analyser: pieces of text come in, words in three forms go out.

A word has a `raw` form (lower case, accents folded), a `stem` (raw without its ending) and a mark
whether searches index it: stop words and over-long words have forms, too, but are not indexed. The
analysis is that of `TEXT_OPTIONS`, so indexes of Lance and words found here always agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.storage.segments import TEXT_OPTIONS
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INDEXED: Final = {name: value for name, value in TEXT_OPTIONS.items() if name != "with_position"}
_STEMS: Final = {**_INDEXED, "remove_stop_words": False, "max_token_length": None}
_RAW: Final = {**_STEMS, "stem": False}
_CUT: Final = {**_RAW, "lower_case": False, "ascii_folding": False}

ANALYSIS: Final = f"{lance.__version__} {sorted(_INDEXED.items())}"
"""Words that were kept are those of today exactly if this is the same."""

_MARK: Final = "Z"
"""Stands between pieces: pieces have no capital of ASCII, so it can be told from their words."""
_ANCHOR: Final = "zebra "
"""Positions are counted from the first word that is kept: this one is."""
_PORTION: Final = 8_192
"""Pieces given to the analyser in one call."""


_MOST_KEPT: Final = 1_000
"""Characters of a text whose words are kept: it may be asked for again."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query."""

    raw: str
    stem: str
    is_indexed: bool


@dataclass(frozen=True, slots=True)
class Words:
    """The words of many pieces in order: the first `counts[0]` are those of the first piece."""

    counts: np.ndarray
    """int64, words of each piece."""
    raw: pa.StringArray
    stems: pa.StringArray
    is_indexed: np.ndarray


def words_of(text: str) -> tuple[Word, ...]:
    """The words of one text, stop words and over-long words among them."""
    return _kept_words(text) if len(text) <= _MOST_KEPT else _words(text)


@lru_cache(maxsize=1024)
def _kept_words(text: str) -> tuple[Word, ...]:
    return _words(text)


def _words(text: str) -> tuple[Word, ...]:
    with translated("analysing text", "a query"):
        raw, stems, is_indexed = _analyse(text)
    return tuple(map(Word, raw, stems, is_indexed.tolist()))


def analyse_pieces(pieces: pa.StringArray, check: Callable[[], None]) -> Words:
    """The words of pieces of text that have no ASCII capital, blank or punctuation.

    Args:
        check: asked between portions of the work; it may raise.
    """
    counts: list[np.ndarray] = [np.empty(0, np.int64)]
    raw: list[pa.Array] = [pa.array([], pa.string())]
    stems: list[pa.Array] = [pa.array([], pa.string())]
    is_indexed: list[np.ndarray] = [np.empty(0, np.bool_)]
    for start in range(0, len(pieces), _PORTION):
        check()
        portion = pieces.slice(start, _PORTION)
        with translated("analysing text", "a column"):
            found = _analyse(" ".join(portion.to_pylist()))
            counts.append(_count_words(portion))
        raw.append(pa.array(found[0], pa.string()))
        stems.append(pa.array(found[1], pa.string()))
        is_indexed.append(found[2])
    return Words(
        np.concatenate(counts),
        pa.concat_arrays(raw),
        pa.concat_arrays(stems),
        np.concatenate(is_indexed),
    )


def _analyse(text: str) -> tuple[list[str], list[str], np.ndarray]:
    raw = [token.text for token in _tokens(text, _RAW)]
    stems = [token.text for token in _tokens(text, _STEMS)]
    is_indexed = np.zeros(len(raw) + 1, np.bool_)
    is_indexed[[token.position for token in _tokens(_ANCHOR + text, _INDEXED)]] = True
    return raw, stems, is_indexed[1:]


def _count_words(pieces: pa.StringArray) -> np.ndarray:
    """One word in each piece of ASCII; others may hold blanks and marks of other scripts."""
    counts = np.ones(len(pieces), np.int64)
    others = np.flatnonzero(~pc.string_is_ascii(pieces).to_numpy(zero_copy_only=False))
    if len(others):
        listed = pieces.take(pa.array(others)).to_pylist()
        tokens = _tokens(f" {_MARK} ".join([*listed, ""]), _CUT)
        marks = np.flatnonzero([token.text == _MARK for token in tokens])
        counts[others] = np.diff(marks, prepend=-1) - 1
    return counts


def _tokens(text: str, options: dict[str, Any]) -> Sequence[Any]:
    tokens: Sequence[Any] = lance.tokenize(text, **options)
    return tokens
