"""Searches in the words of a text column at one version: a query comes in, rows and scores go out.

Every row is searched, whether or not Lance has an index on the column, with the analysis that index
would have. A null text matches nothing and takes no part in scores.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import ParameterError
from omnigraph_core.interruption import pause
from omnigraph_core.query.typed import TextFunction
from omnigraph_core.storage.words import words_of
from omnigraph_core.topology.fuzzy import Spellings, spellings_of
from omnigraph_core.topology.phrases import rows_with_phrase

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import pyarrow as pa

    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.word_index import WordIndex

_K1: Final = 1.2
_B: Final = 0.75
_SPARSE: Final = 16
"""Scores of fewer than one row in so many are gathered in a list rather than by row."""


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


class Postings:
    """The words of a column. Immutable to callers and safe for threads; answers are kept."""

    __slots__ = ("_cache", "_key", "_norms", "_totals", "_whole", "index", "states", "unsaved")

    def __init__(
        self,
        index: WordIndex,
        states: tuple[FragmentState, ...],
        cache: ByteCache,
        key: Hashable,
        *,
        unsaved: int = 0,
        whole: TextStatistics | None = None,
    ) -> None:
        """Args:
        states: the fragments whose rows the index has, in order.
        key: what the cache has these words under.
        unsaved: how many of the rows no file beside the graph has.
        whole: of the whole column, if the index has only some of its rows.
        """
        self.index = index
        self.states = states
        self.unsaved = unsaved
        self._cache = cache
        self._key = key
        self._whole = whole
        lengths = np.maximum(index.lengths, 0)
        documents = int(np.count_nonzero(index.lengths >= 0))
        self._totals = TextStatistics(documents, int(lengths.sum(dtype=np.int64)), {})
        of_all = self._totals if whole is None else whole
        average = of_all.word_count / max(of_all.documents, 1)
        self._norms = _K1 * (1 - _B + _B * (lengths / max(average, 1e-9)))

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + int(self._norms.nbytes) + 1_000 + 200 * len(self.states)

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
        key = ("matching", self._key, kind, query, max_edits)
        make = lambda: self._matching(kind, query, max_edits)  # noqa: E731
        return self._cache.get(key, make, lambda found: _nbytes(found) + 4 * len(query))

    def bm25(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """The rows with a hit, ascending (int32), and their scores (float64).

        The sum over the distinct words of the query; one that stands there twice counts once.
        """
        key = ("bm25", self._key, query)
        make = lambda: self._scored(query)  # noqa: E731
        return self._cache.get(key, make, lambda found: _nbytes_of_pair(found) + 4 * len(query))

    def statistics(self, query: str) -> TextStatistics:
        """What these rows add to the scores of a query anywhere in the column."""
        found = {stem: len(self.index.postings(text)[0]) for stem, text in self._wanted(query)}
        return replace(self._totals, frequencies=found)

    def _matching(self, kind: TextFunction, query: str, max_edits: int) -> np.ndarray:
        if kind is TextFunction.MATCH_TEXT:
            is_found = rows_with_phrase(self.index, [word.stem for word in words_of(query)])
        elif kind is TextFunction.FUZZY:
            is_found = self._rows_near(query, max_edits)
        else:
            is_found = np.zeros(self.index.count, np.bool_)
            for _, text in self._wanted(query):
                pause()
                is_found[self.index.postings(text)[0]] = True
        is_found.flags.writeable = False
        return is_found

    def _wanted(self, query: str) -> list[tuple[str, int]]:
        """The indexed words of a query that some row has, each once, in an order of their own."""
        stems = sorted({word.stem for word in words_of(query) if word.is_indexed})
        found = []
        for stem in stems:
            pause()
            found.append((stem, self.index.lexicon.find(stem)))
        return [(stem, text) for stem, text in found if text >= 0]

    def _rows_near(self, query: str, max_edits: int) -> np.ndarray:
        raws, spellings = self._spellings()
        is_near = np.zeros(len(self.index.lexicon), np.bool_)
        for word in {word.raw for word in words_of(query) if word.is_indexed}:
            pause()
            is_near[raws[spellings.near(word, max_edits)]] = True
        return self.index.rows_with(is_near.take(self.index.form_raw))

    def _spellings(self) -> tuple[np.ndarray, Spellings]:
        """The texts that are words as written, and how they are spelled."""

        def build() -> tuple[np.ndarray, Spellings]:
            raws = np.unique(self.index.form_raw)
            texts: pa.LargeStringArray = self.index.lexicon.texts().take(raws)
            return raws, spellings_of(texts)

        return self._cache.get(("spellings", self._key), build, _nbytes_of_pair)

    def _scored(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        wanted = self._wanted(query)
        found = [self.index.postings(text) for _, text in wanted]
        if not found:
            return np.empty(0, np.int32), np.empty(0)
        hits = np.concatenate([rows for rows, _ in found])
        weights = self._weights(hits, found, self._rarities([stem for stem, _ in wanted], found))
        if len(hits) * _SPARSE < self.index.count:
            rows, places = np.unique(hits, return_inverse=True)
            scores = np.bincount(places, weights, len(rows))
        else:
            by_row = np.bincount(hits, weights, self.index.count)
            rows = np.flatnonzero(by_row > 0).astype(np.int32)  # no hit weighs nothing
            scores = by_row.take(rows)
        rows.flags.writeable = scores.flags.writeable = False
        return rows, scores

    def _rarities(
        self, stems: Sequence[str], found: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> list[float]:
        """How much a hit of each stem counts: the more, the fewer texts have it."""
        if self._whole is None:
            documents = self._totals.documents
            frequencies = [len(rows) for rows, _ in found]
        else:
            documents = self._whole.documents
            frequencies = [self._whole.frequencies[stem] for stem in stems]
        return [
            (_K1 + 1) * math.log1p((documents - frequency + 0.5) / (frequency + 0.5))
            for frequency in frequencies
        ]

    def _weights(
        self,
        hits: np.ndarray,
        found: Sequence[tuple[np.ndarray, np.ndarray]],
        rarities: Sequence[float],
    ) -> np.ndarray:
        """What each hit adds to the score of its row."""
        counts = np.concatenate([counts for _, counts in found])
        weights = np.repeat(rarities, [len(rows) for rows, _ in found])
        weights *= counts
        weights /= self._norms.take(hits) + counts
        return weights


def _nbytes(array: np.ndarray) -> int:
    return int(array.nbytes) + 500


def _nbytes_of_pair(pair: tuple[np.ndarray, np.ndarray | Spellings]) -> int:
    return int(pair[0].nbytes + pair[1].nbytes) + 500
