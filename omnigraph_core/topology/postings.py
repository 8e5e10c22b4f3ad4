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
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.row_space import FragmentState, column_identities, read_fragments
from omnigraph_core.storage.words import ANALYSIS
from omnigraph_core.topology.following import follow_rows
from omnigraph_core.topology.row_numbers import RowNumbers, numbered_anew
from omnigraph_core.topology.word_index import WordIndex, empty_index, extended, selected_rows
from omnigraph_core.topology.word_search import Postings, WordPart

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

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
_LEAST_APART: Final = 1_024
_APART_SHARE: Final = 64
"""One row whose words are kept apart for so many others: then they are put among them."""
_SHARED_BYTES: Final = 1_000


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
        self._rows = dense.rows
        self._column = column
        self._cache = cache
        self._derived = derived if dense.count >= DERIVED_MIN_ROWS.value else None
        self._check = check
        root, location, version, _ = dense.identity
        # A column may be renamed, or made again under its name: what it holds goes by this.
        self._content = column_identities(dense.table)[column]
        told = repr((location, self._content, _FORMAT, ANALYSIS))
        self._prefix = hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
        self._file = f"{self._prefix}-{version}"
        self._recent = ("recent words", root, self._prefix)

    def find(self, key: Hashable) -> Postings:
        found = self._continued(key) or self._begun(key)
        most = max(1, DERIVED_GROWTH.value * self._dense.count)
        if self._derived is not None and found.unsaved >= most:
            found = self._saved(found, key)
        self._cache.put(self._recent, (key, *self._recent_keys()[: _RECENT - 1]), 500)
        return found

    def _continued(self, key: Hashable) -> Postings | None:
        """Words of another version under the same numbers, with those of rows that are new."""
        for held, rows in self._iter_held():
            found = self._grown(held, key) if rows.numbering is self._rows.numbering else None
            if found is not None:
                # What both share is counted with the newer one.
                self._cache.resize(held.key, _SHARED_BYTES)
                return found
        return None

    def _grown(self, held: Postings, key: Hashable) -> Postings | None:
        """None if a text is needed that was not looked at, or too many came since."""
        rows, start = self._rows, held.filled
        if len(held.missing) and rows.which_live(held.missing).any():
            return None
        first, *later = held.parts
        new = live_from(rows, start)
        missing = np.concatenate((held.missing, rows.gaps[np.searchsorted(rows.gaps, start) :]))
        parts, unsaved = held.parts, held.unsaved + len(new)
        if len(new):
            tail = later[0] if later else WordPart(empty_index(), np.zeros(0, np.int32))
            if tail.index.count + len(new) > max(_LEAST_APART, first.index.count // _APART_SHARE):
                return self._with_rest(first, key, unsaved)
            grown = extended(tail.index, self._texts_from(start), self._check)
            assert tail.numbers is not None
            parts = (first, WordPart(grown, np.concatenate((tail.numbers, new))))
        return Postings(
            parts,
            rows,
            self._cache,
            key,
            missing=missing,
            unsaved=unsaved,
            filled=max(start, rows.extent),
        )

    def _begun(self, key: Hashable) -> Postings:
        """Words from those of a version under other numbers, from a file, or from the texts."""
        best: tuple[WordPart, int] | None = None
        for held, rows in self._iter_held():
            part = self._taken_over(held.parts[0], rows)
            if part is not None and (best is None or part.index.count > best[0].index.count):
                best = part, held.unsaved
        part, unsaved = best or (self._from_files(), 0)
        taken = part.index.count
        unsaved = min(unsaved, taken) + self._dense.count - taken
        return self._with_rest(part, key, unsaved)

    def _with_rest(self, part: WordPart, key: Hashable, unsaved: int) -> Postings:
        """Words of all rows, in one part, from a part with those of the first ones."""
        rows = self._rows
        numbers = part.numbers_of(np.arange(part.index.count))
        is_live = rows.which_live(numbers)
        start = _covered(rows, numbers[is_live])
        is_live &= numbers < start
        index = selected_rows(part.index, is_live)
        index = extended(index, self._texts_from(start), self._check)
        if index.count != rows.count:
            raise InvariantBroken(f"`{self._dense.table.location}` has as many rows as it says")
        whole = WordPart(index, rows.live_numbers() if len(rows.gaps) else None)
        return Postings((whole,), rows, self._cache, key, missing=rows.gaps, unsaved=unsaved)

    def _saved(self, found: Postings, key: Hashable) -> Postings:
        """The same in one part without rows that are gone, which is what a file has."""
        assert self._derived is not None
        whole = self._with_rest(found.parts[0], key, 0)
        about = {"fragments": [astuple(state) for state in self._dense.fragments]}
        arrays = whole.parts[0].index.arrays()
        self._derived.save(KIND, self._file, arrays, about, [self._dense.table])
        return whole

    def _iter_held(self) -> Iterator[tuple[Postings, RowNumbers]]:
        """Words of other versions that are in memory, the last used first."""
        for held in map(self._cache.peek, self._recent_keys()):
            if isinstance(held, Postings) and isinstance(held.rows, RowNumbers):
                yield held, held.rows

    def _recent_keys(self) -> tuple[Hashable, ...]:
        return cast("tuple[Hashable, ...]", self._cache.peek(self._recent) or ())

    def _taken_over(self, part: WordPart, old: RowNumbers) -> WordPart | None:
        """The rows of a part under the numbers they have now; None if none is there."""
        moved = follow_rows(old, self._rows)
        if moved is None:
            return None
        numbers = part.numbers_of(np.arange(part.index.count))
        inside = numbers < old.extent
        found = np.full(len(numbers), -1, np.int32)
        found[inside] = moved.applied(numbers[inside])
        is_left = found >= 0
        if not is_left.any():
            return None
        return WordPart(selected_rows(part.index, is_left), found[is_left])

    def _from_files(self) -> WordPart:
        """The words of this version from its file, or those that the file of another has."""
        if self._derived is not None:
            files = self._derived.list(KIND, f"{self._prefix}-")[:_MOST_TRIED]
            for file in (self._file, *(name for name in files if name != self._file)):
                part = self._from_file(self._derived, file)
                if part is not None:
                    return part
        return WordPart(empty_index())

    def _from_file(self, derived: DerivedFiles, file: str) -> WordPart | None:
        table = self._dense.table
        states = _states(derived, file)
        version = file.removeprefix(f"{self._prefix}-")
        if not states or not version.isdigit():
            return None
        old = numbered_anew(lambda: open_table(table.store, table.location, int(version)), states)
        index = _load(derived, file)
        if index is None or index.count != old.count:
            return None
        return self._taken_over(WordPart(index), old)

    def _texts_from(self, start: int) -> Iterator[pa.StringArray]:
        """The texts of the rows from a number on; that is where a fragment begins."""
        if self._dense.is_resident(self._column):
            texts = self._dense.column(self._column)
            numbers = live_from(self._rows, start)
            yield texts.slice(start) if len(texts) - start == len(numbers) else texts.take(numbers)
            return
        new = [
            stretch.state.id
            for stretch in self._rows.stretches
            if stretch.start >= start and stretch.state.rows
        ]
        for batch in read_fragments(self._dense.table, [self._column], new):
            yield batch.column(0)


def live_from(rows: RowNumbers, start: int) -> np.ndarray:
    """The numbers of the rows from a number on, int32, ascending."""
    numbers = np.arange(min(start, rows.extent), rows.extent, dtype=np.int32)
    found: np.ndarray = numbers[rows.which_live(numbers)]
    return found


def _covered(rows: RowNumbers, numbers: np.ndarray) -> int:
    """The number up to which every row is among some, where a fragment ends or the last one."""
    start = 0
    for stretch, state in zip(rows.stretches, rows.states, strict=True):
        first, last = np.searchsorted(numbers, (stretch.start, stretch.end))
        if last - first != state.rows:
            return start
        start = stretch.end
    return start


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
