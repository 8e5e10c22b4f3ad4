"""Rows by the text they have in a column whose texts hardly repeat: texts come in, rows go out.

Kept is one 64-bit integer per row, the hash of its text above and its number below, sorted. What
has the hash is compared with the text itself, so two texts of one hash only cost time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.comparisons import as_truth
from omnigraph_core.topology.text_hash import hash_text, hash_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.memory import ByteCache

_SMALL: Final = 4_096
"""Rows up to which comparing all of them costs no more."""
_PATIENCE: Final = 2
"""Times a column is compared whole before its texts are sorted."""
_HASH_BITS: Final = np.uint64(32)
_NUMBER_MASK: Final = np.uint64(2**32 - 1)


def try_numbers_with(
    dense: DenseTable, name: str, texts: Iterable[str], cache: ByteCache
) -> np.ndarray | None:
    """The ascending numbers, int32, of rows with one of the texts; None to compare them all.

    Only a column in memory is sorted, and only when it is asked for repeatedly.
    """
    if dense.count <= _SMALL or not dense.is_resident(name):
        return None
    entries = _try_entries(dense, name, cache)
    if entries is None:
        return None
    column = dense.column(name)
    found = [_with_text(entries, column, text) for text in dict.fromkeys(texts)]
    if len(found) == 1:
        return found[0]
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int32)


def _try_entries(dense: DenseTable, name: str, cache: ByteCache) -> np.ndarray | None:
    key = ("text places", dense.identity, name)
    kept = cache.peek(key)
    if kept is not None:
        return cast("np.ndarray", kept)
    uses = cache.get(("text uses", dense.identity, name), lambda: [0], lambda _: 200)
    uses[0] += 1
    if uses[0] <= _PATIENCE:
        return None
    return cache.get(key, lambda: _entries(dense.column(name)), lambda made: int(made.nbytes))


def _entries(column: pa.StringArray) -> np.ndarray:
    entries = (hash_texts(column) << _HASH_BITS) | np.arange(len(column), dtype=np.uint64)
    entries.sort()
    entries.flags.writeable = False
    return entries


def _with_text(entries: np.ndarray, column: pa.StringArray, text: str) -> np.ndarray:
    sought = hash_text(text)
    bounds = np.array([sought << 32, sought << 32 | 0xFFFFFFFF], np.uint64)
    start, end = np.searchsorted(entries, bounds)
    numbers: np.ndarray = (entries[start:end] & _NUMBER_MASK).astype(np.int32)
    if len(numbers):
        numbers = numbers[as_truth(pc.equal(column.take(pa.array(numbers)), text))]
    return numbers
