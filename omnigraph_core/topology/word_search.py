"""Searches in the words of a text column at one version: a query comes in, rows and scores go out.

Every row is searched, whether or not Lance has an index on the column, with the analysis that index
would have. A null text matches nothing and takes no part in scores.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from omnigraph_core.errors import ParameterError
from omnigraph_core.interruption import pause
from omnigraph_core.query.typed import TextFunction
from omnigraph_core.storage.words import words_of
from omnigraph_core.topology.fuzzy import Spellings, spellings_of
from omnigraph_core.topology.phrases import rows_with_phrase

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    import pyarrow as pa

    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.word_index import WordIndex

_K1: Final = 1.2
_B: Final = 0.75
_SPARSE: Final = 16
"""Scores of fewer than one row in so many are gathered in a list rather than by row."""
_SERIALS: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """What scores depend on beyond the text itself; of several parts of a column, their sum."""

    documents: int
    """Texts that are not null."""
    word_count: int
    """Indexed words of all of them."""
    frequencies: Mapping[str, int]
    """For stems of a query, the number of texts that have it."""

    def plus(self, other: TextStatistics) -> TextStatistics:
        return TextStatistics(
            self.documents + other.documents,
            self.word_count + other.word_count,
            Counter(self.frequencies) + Counter(other.frequencies),
        )


class Rows(Protocol):
    """Which numbers have a row in a version."""

    @property
    def extent(self) -> int: ...

    @property
    def gaps(self) -> np.ndarray: ...

    def which_live(self, numbers: np.ndarray) -> np.ndarray: ...


class _EveryRow:
    """So many rows, each with its place for a number."""

    def __init__(self, extent: int) -> None:
        self.extent = extent
        self.gaps = np.zeros(0, np.int32)

    def which_live(self, numbers: np.ndarray) -> np.ndarray:
        live: np.ndarray = numbers < self.extent
        return live


class WordPart:
    """The words of some rows of a table. Immutable; versions share it."""

    __slots__ = ("documents", "index", "numbers", "serial", "word_count")

    def __init__(self, index: WordIndex, numbers: np.ndarray | None = None) -> None:
        """Args:
        numbers: of the rows, ascending; None: 0, 1, 2, and so on.
        """
        self.index = index
        self.numbers = numbers
        self.serial = next(_SERIALS)
        self.documents = int(np.count_nonzero(index.lengths >= 0))
        self.word_count = int(np.maximum(index.lengths, 0).sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + (0 if self.numbers is None else int(self.numbers.nbytes))

    def numbers_of(self, rows: np.ndarray) -> np.ndarray:
        """The numbers that rows of the index have in the table, int32."""
        return (
            rows.astype(np.int32, copy=False) if self.numbers is None else self.numbers.take(rows)
        )

    def statistics(self, rows: Rows) -> TextStatistics:
        """Of those of the rows that a version has, without frequencies."""
        gone = self._lengths_without(rows)
        return TextStatistics(
            self.documents - int(np.count_nonzero(gone >= 0)),
            self.word_count - int(np.maximum(gone, 0).sum(dtype=np.int64)),
            {},
        )

    def _lengths_without(self, rows: Rows) -> np.ndarray:
        """How many words the texts have whose rows a version does not have."""
        lengths = self.index.lengths
        if self.numbers is None:
            inside = min(rows.extent, len(lengths))
            gaps = rows.gaps[: int(np.searchsorted(rows.gaps, inside))]
        else:
            inside = int(np.searchsorted(self.numbers, rows.extent))
            known = self.numbers[:inside]
            places = np.searchsorted(known, rows.gaps)
            gaps = places[known.take(places, mode="clip") == rows.gaps] if inside else places[:0]
        return np.concatenate((lengths.take(gaps), lengths[inside:]))


@dataclass(frozen=True, slots=True, eq=False)
class _Hits:
    """Rows that have one word of a query, by number."""

    stem: str
    numbers: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    """Of their texts, in words."""


class Postings:
    """The words of a column. Immutable to callers and safe for threads; answers are kept.

    Rows that came later are in a part of their own, so that a commit touches no other.
    """

    __slots__ = (
        "_cache",
        "_totals",
        "_whole",
        "filled",
        "key",
        "missing",
        "parts",
        "rows",
        "unsaved",
    )

    def __init__(
        self,
        parts: tuple[WordPart, ...],
        rows: Rows,
        cache: ByteCache,
        key: Hashable,
        *,
        missing: np.ndarray | None = None,
        unsaved: int = 0,
        filled: int | None = None,
        whole: TextStatistics | None = None,
    ) -> None:
        """Args:
        parts: every row of the version is in one of them; rows that are gone may be, too.
        key: what the cache has these words under.
        missing: numbers whose texts nobody has looked at, ascending.
        unsaved: how many of the rows no file beside the graph has.
        filled: below this, texts were looked at; the extent by default.
        whole: of the whole column, if these are only some of its rows.
        """
        self.parts = parts
        self.rows = rows
        self.missing = np.zeros(0, np.int32) if missing is None else missing
        self.unsaved = unsaved
        self.filled = rows.extent if filled is None else filled
        self.key = key
        self._cache = cache
        self._whole = whole
        self._totals = TextStatistics(0, 0, {})
        for part in parts:
            self._totals = self._totals.plus(part.statistics(rows))

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts) + 1_000 + int(self.missing.nbytes)

    def matching(self, kind: TextFunction, query: str, max_edits: int) -> np.ndarray:
        """Which rows match, a mask that is not to be written to.

        Stop words and over-long words of a query find nothing, but are part of a phrase. In fuzzy
        matches every word of a text counts, by its spelling.

        Args:
            max_edits: for `fuzzy` only.

        Raises:
            ParameterError: the number of edits is negative.
        """
        if kind is not TextFunction.FUZZY:
            max_edits = 0
        elif max_edits < 0:
            raise ParameterError(
                [f"`fuzzy` takes a distance of zero edits or more, not {max_edits}"]
            )
        key = ("matching", self.key, kind, query, max_edits)
        make = lambda: self._matching(kind, query, max_edits)  # noqa: E731
        return self._cache.get(key, make, lambda found: _nbytes(found) + 4 * len(query))

    def bm25(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """The rows with a hit, ascending (int32), and their scores (float64).

        The sum over the distinct words of the query; one that stands there twice counts once.
        """
        key = ("bm25", self.key, query)
        make = lambda: self._scored(query)  # noqa: E731
        return self._cache.get(key, make, lambda found: _nbytes_of_pair(found) + 4 * len(query))

    def statistics(self, query: str) -> TextStatistics:
        """What these rows add to the scores of a query anywhere in the column."""
        found = {hits.stem: len(hits.numbers) for hits in self._iter_hits(query)}
        return replace(self._totals, frequencies=found)

    def _matching(self, kind: TextFunction, query: str, max_edits: int) -> np.ndarray:
        is_found = np.zeros(self.rows.extent, np.bool_)
        for part in self.parts:
            numbers = part.numbers_of(self._rows_matching(part, kind, query, max_edits))
            is_found[numbers[numbers < self.rows.extent]] = True
        is_found[self.rows.gaps] = False
        is_found.flags.writeable = False
        return is_found

    def _rows_matching(
        self, part: WordPart, kind: TextFunction, query: str, max_edits: int
    ) -> np.ndarray:
        """The rows of a part that match, in any order, maybe repeatedly."""
        index = part.index
        if kind is TextFunction.MATCH_TEXT:
            stems = [word.stem for word in words_of(query)]
            return np.flatnonzero(rows_with_phrase(index, stems))
        if kind is TextFunction.FUZZY:
            return np.flatnonzero(self._rows_near(part, query, max_edits))
        found = [np.zeros(0, np.int32)]
        for stem in _wanted(query):
            pause()
            if (text := index.lexicon.find(stem)) >= 0:
                found.append(index.postings(text)[0])
        return np.concatenate(found)

    def _rows_near(self, part: WordPart, query: str, max_edits: int) -> np.ndarray:
        index = part.index
        raws, spellings = self._spellings(part)
        is_near = np.zeros(len(index.lexicon), np.bool_)
        for word in {word.raw for word in words_of(query) if word.is_indexed}:
            pause()
            is_near[raws[spellings.near(word, max_edits)]] = True
        return index.rows_with(is_near.take(index.form_raw))

    def _spellings(self, part: WordPart) -> tuple[np.ndarray, Spellings]:
        """The texts that are words as written, and how they are spelled."""

        def build() -> tuple[np.ndarray, Spellings]:
            raws = np.unique(part.index.form_raw)
            texts: pa.LargeStringArray = part.index.lexicon.texts().take(raws)
            return raws, spellings_of(texts)

        return self._cache.get(("spellings", part.serial), build, _nbytes_of_pair)

    def _scored(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        found = list(self._iter_hits(query))
        if not found:
            return np.empty(0, np.int32), np.empty(0)
        hits = np.concatenate([word.numbers for word in found])
        weights = np.concatenate([self._weights(word) for word in found])
        if len(hits) * _SPARSE < self.rows.extent:
            rows, places = np.unique(hits, return_inverse=True)
            scores = np.bincount(places, weights, len(rows))
        else:
            by_row = np.bincount(hits, weights, self.rows.extent)
            rows = np.flatnonzero(by_row > 0).astype(np.int32)  # no hit weighs nothing
            scores = by_row.take(rows)
        rows.flags.writeable = scores.flags.writeable = False
        return rows, scores

    def _iter_hits(self, query: str) -> Iterator[_Hits]:
        """The rows that have each word of a query, for those that some row has."""
        for stem in _wanted(query):
            pause()
            found = [
                _hits_in(part, text)
                for part in self.parts
                if (text := part.index.lexicon.find(stem)) >= 0
            ]
            if not found:
                continue
            numbers, counts, lengths = (np.concatenate(items) for items in zip(*found, strict=True))
            is_live = self.rows.which_live(numbers)
            if is_live.all():
                yield _Hits(stem, numbers, counts, lengths)
            elif is_live.any():
                yield _Hits(stem, numbers[is_live], counts[is_live], lengths[is_live])

    def _weights(self, hits: _Hits) -> np.ndarray:
        """What each hit of a word adds to the score of its row: the more, the rarer it is."""
        of_all = self._totals if self._whole is None else self._whole
        own = len(hits.numbers)
        frequency = own if self._whole is None else self._whole.frequencies[hits.stem]
        rarity = math.log1p((of_all.documents - frequency + 0.5) / (frequency + 0.5))
        average = of_all.word_count / max(of_all.documents, 1)
        norms = _K1 * (1 - _B + _B * (hits.lengths / max(average, 1e-9)))
        weights: np.ndarray = np.full(own, (_K1 + 1) * rarity)
        weights *= hits.counts
        weights /= norms + hits.counts
        return weights


def words_alone(
    part: WordPart, cache: ByteCache, key: Hashable, whole: TextStatistics | None = None
) -> Postings:
    """The words of rows that were read by themselves, of whatever table.

    Args:
        whole: of the column that they are some of the rows of.
    """
    return Postings((part,), _EveryRow(part.index.count), cache, key, whole=whole)


def _wanted(query: str) -> list[str]:
    """The indexed words of a query, each once, in an order of their own."""
    return sorted({word.stem for word in words_of(query) if word.is_indexed})


def _hits_in(part: WordPart, text: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of rows that have a word, how often each, and how many words they have."""
    rows, counts = part.index.postings(text)
    return part.numbers_of(rows), counts, np.maximum(part.index.lengths.take(rows), 0)


def _nbytes(array: np.ndarray) -> int:
    return int(array.nbytes) + 500


def _nbytes_of_pair(pair: tuple[np.ndarray, np.ndarray | Spellings]) -> int:
    return int(pair[0].nbytes + pair[1].nbytes) + 500
