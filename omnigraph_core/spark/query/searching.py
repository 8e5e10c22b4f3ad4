"""Searches in rows of one table: a batch comes in, what a search gives each of its rows goes out.

The analysis, the scores and the distances are those of the engine. A score depends on the texts of
the whole column: their statistics are counted before, and come along.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.exec.vectors import as_matrix, exact_distances
from omnigraph_core.interruption import pause
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import Bm25, Nearest, TextMatch
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.word_index import empty_index, extended
from omnigraph_core.topology.word_search import WordPart, words_alone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.exec.query_vectors import QueryVector
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.spark.query.cells import Search
    from omnigraph_core.topology.word_search import Postings, TextStatistics
    from omnigraph_core.values import Value

_CACHE_BYTES: Final = 64 << 20
"""For what one batch is asked repeatedly."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What the searches of a query look for."""

    values: Values
    vectors: Mapping[Nearest, QueryVector | None] = field(default_factory=dict)
    statistics: Mapping[Bm25, TextStatistics] = field(default_factory=dict)

    def of(self, expr: TypedExpr) -> Value:
        if not is_given(expr):
            raise InvariantBroken(f"what a search looks for is known before any row, not {expr}")
        return self.values.of(expr)


class SearchedRows:
    """Some rows of a table and what searches find in them; texts are analysed once."""

    def __init__(self, rows: pa.RecordBatch, sought: Sought) -> None:
        self._rows = rows
        self._sought = sought
        self._words: dict[str, WordPart] = {}
        self._cache = ByteCache(_CACHE_BYTES)

    def column(self, search: Search) -> pa.Array:
        """A truth, a score or a distance; null where a row takes no part."""
        match search:
            case TextMatch():
                return self._matches(search)
            case Bm25():
                return self._scores(search)
            case Nearest():
                return self._distances(search)

    def statistics(self, search: Bm25) -> TextStatistics:
        """What these rows add to the statistics of the column."""
        query = self._sought.of(search.query)
        return self._postings(search.field.property).statistics("" if query is None else str(query))

    def _matches(self, search: TextMatch) -> pa.Array:
        query = self._sought.of(search.query)
        edits = 0 if search.max_edits is None else self._sought.of(search.max_edits)
        if not isinstance(query, str) or not isinstance(edits, int):
            return pa.nulls(self._rows.num_rows, pa.bool_())
        words = self._postings(search.field.property)
        found = words.matching(search.function, query, edits)
        return pa.array(found, mask=words.parts[0].index.lengths < 0)

    def _scores(self, search: Bm25) -> pa.Array:
        query = self._sought.of(search.query)
        scores = np.full(self._rows.num_rows, np.nan)
        if query is not None:
            whole = self._sought.statistics[search]
            rows, found = self._postings(search.field.property, whole).bm25(str(query))
            scores[rows] = found
        return pa.array(scores, mask=np.isnan(scores))

    def _distances(self, search: Nearest) -> pa.Array:
        vector = self._sought.vectors[search]
        if vector is None:
            return pa.nulls(self._rows.num_rows, pa.float64())
        stored = self._rows.column(search.field.property)
        found = exact_distances(vector, *as_matrix(stored))
        return pa.array(found, mask=np.isnan(found))

    def _postings(self, name: str, whole: TextStatistics | None = None) -> Postings:
        part = self._words.get(name)
        if part is None:
            index = extended(empty_index(), [self._rows.column(name)], pause)
            part = self._words[name] = WordPart(index)
        key = (name, None if whole is None else id(whole))
        return words_alone(part, self._cache, key, whole)
