"""The words of a column wherever they can be had: a table's version comes in, its postings go out.

They come from the cache, from a file beside the graph, or from either's words of another version
and an analysis of the rows that are new; at last from the texts. All ways lead to the same answers.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from omnigraph_core.constants import DERIVED_GROWTH, DERIVED_MIN_ROWS
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.row_space import FragmentState, column_identities, read_fragments
from omnigraph_core.storage.words import ANALYSIS
from omnigraph_core.topology.reuse import plan_parts
from omnigraph_core.topology.row_numbers import RowNumbers
from omnigraph_core.topology.word_index import WordIndex, empty_index, extended, selected_rows
from omnigraph_core.topology.word_search import Postings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from omnigraph_core.storage.derived import DerivedFiles
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.memory import ByteCache

__all__ = ["KIND", "Postings", "postings_of"]

KIND: Final = "words"
_FORMAT: Final = 1
_RECENT: Final = 3
"""Versions in the cache that others are made from: branches take turns."""
_MOST_TRIED: Final = 4
"""Files of other versions whose beginnings are read, the newest first."""


def _go_on() -> None:
    """What asks nothing."""


def postings_of(
    dense: DenseTable,
    column: str,
    cache: ByteCache,
    derived: DerivedFiles | None,
    check: Callable[[], None] = _go_on,
) -> Postings:
    """The words of a text column of a table's version.

    Args:
        check: asked between portions of a long analysis; it may raise.
    """
    key = ("words", dense.identity, column)
    make = lambda: _Finder(dense, column, cache, derived, check).find(key)  # noqa: E731
    return cache.get(key, make, lambda words: words.nbytes)


class _Finder:
    def __init__(
        self,
        dense: DenseTable,
        column: str,
        cache: ByteCache,
        derived: DerivedFiles | None,
        check: Callable[[], None],
    ) -> None:
        self._dense = dense
        self._column = column
        self._cache = cache
        self._derived = derived if dense.count >= DERIVED_MIN_ROWS.value else None
        self._check = check
        root, location, version = dense.identity
        # A column may be renamed, or made again under its name: what it holds goes by this.
        self._content = column_identities(dense.table)[column]
        told = repr((location, self._content, _FORMAT, ANALYSIS))
        self._prefix = hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
        self._file = f"{self._prefix}-{version}"
        self._recent = ("recent words", root, self._prefix)

    def find(self, key: Hashable) -> Postings:
        index, unsaved = self._kept_whole() or self._made()
        if index.count != self._dense.count:
            raise InvariantBroken(f"`{self._dense.table.location}` has as many rows as it says")
        if self._derived is not None and unsaved >= max(1, DERIVED_GROWTH.value * index.count):
            about = {"fragments": [astuple(state) for state in self._dense.fragments]}
            self._derived.save(KIND, self._file, index.arrays(), about, [self._dense.table])
            unsaved = 0
        self._cache.put(self._recent, (key, *self._recent_keys()[: _RECENT - 1]), 500)
        return Postings(index, self._dense.fragments, self._cache, key, unsaved=unsaved)

    def _kept_whole(self) -> tuple[WordIndex, int] | None:
        """The words of this very version, from a file."""
        index = None if self._derived is None else _load(self._derived, self._file)
        return None if index is None or index.count != self._dense.count else (index, 0)

    def _made(self) -> tuple[WordIndex, int]:
        """The index, and how many of its rows no file has."""
        base, is_kept, unsaved = self._base()
        start = int(np.count_nonzero(is_kept))
        index = selected_rows(base, is_kept) if start else empty_index()
        added = extended(index, self._texts_from(start), self._check)
        return added, min(unsaved, start) + self._dense.count - start

    def _base(self) -> tuple[WordIndex, np.ndarray, int]:
        """Words of another version, those of its rows that begin this one, and its unsaved rows."""
        best: tuple[WordIndex, np.ndarray, int] | None = None
        for words in map(self._cache.peek, self._recent_keys()):
            if isinstance(words, Postings):
                is_kept = self._shared_rows(words.states)
                if is_kept is not None and (best is None or is_kept.sum() > best[1].sum()):
                    best = words.index, is_kept, words.unsaved
        return best or self._saved_base()

    def _recent_keys(self) -> tuple[Hashable, ...]:
        return cast("tuple[Hashable, ...]", self._cache.peek(self._recent) or ())

    def _saved_base(self) -> tuple[WordIndex, np.ndarray, int]:
        for file in self._other_files():
            is_kept = self._shared_rows(_states(self._derived, file))
            index = None if is_kept is None else _load(self._derived, file)
            if index is not None and is_kept is not None and index.count == len(is_kept):
                return index, is_kept, 0
        return empty_index(), np.empty(0, np.bool_), 0

    def _other_files(self) -> tuple[str, ...]:
        if self._derived is None:
            return ()
        return self._derived.list(KIND, f"{self._prefix}-")[:_MOST_TRIED]

    def _shared_rows(self, states: Sequence[FragmentState]) -> np.ndarray | None:
        """Which rows of another version are the first rows of this one, in order; None if none."""
        rows = RowNumbers(self._dense.table, self._cache)
        is_kept = np.zeros(sum(state.rows for state in states), np.bool_)
        end = 0
        for part in plan_parts(rows, [_Kept(tuple(states))]):
            if part.source is None:
                break
            places = part.places
            if places is None:
                places = np.arange(part.start, part.start + part.length)
            if places[0] < end:
                break
            is_kept[places] = True
            end = int(places[-1]) + 1
        return is_kept if end else None

    def _texts_from(self, start: int) -> Iterator[pa.StringArray]:
        """The texts of the rows from a number on; that is where a fragment begins."""
        if self._dense.is_resident(self._column):
            yield self._dense.column(self._column).slice(start)
            return
        before = np.cumsum([0, *(state.rows for state in self._dense.fragments)])
        new = [
            state.id
            for state, first in zip(self._dense.fragments, before[:-1], strict=True)
            if first >= start and state.rows
        ]
        for batch in read_fragments(self._dense.table, [self._column], new):
            yield batch.column(0)


class _Kept:
    """What is known of another version's rows."""

    def __init__(self, states: tuple[FragmentState, ...]) -> None:
        self.states = states


def _states(derived: DerivedFiles | None, file: str) -> tuple[FragmentState, ...]:
    """The fragments that a file says it has the words of; none if it does not say."""
    about = None if derived is None else derived.about(KIND, file)
    try:
        told: Any = () if about is None else about["fragments"]
        return tuple(
            FragmentState(number, tuple(files), deletion, int(rows))
            for number, files, deletion, rows in told
        )
    except (KeyError, TypeError, ValueError):
        return ()


def _load(derived: DerivedFiles | None, file: str) -> WordIndex | None:
    found = None if derived is None else derived.load(KIND, file)
    return None if found is None else _whole(found.arrays)


def _whole(arrays: Mapping[str, np.ndarray]) -> WordIndex | None:
    """The index if the arrays are there and of lengths that fit each other."""
    try:
        index = WordIndex.of_arrays(arrays)
    except KeyError:
        return None
    return index if index.is_whole else None
