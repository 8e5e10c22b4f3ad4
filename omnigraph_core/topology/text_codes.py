"""A column of texts as codes: texts come in, small numbers that stand for them go out.

Equal texts have one code, which stays the same when more rows come: only their texts are looked up
among those that have one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.interruption import turn
from omnigraph_core.topology.growing import GrowingArray
from omnigraph_core.topology.growing_column import GrowingColumn
from omnigraph_core.topology.text_map import EVERYTHING, map_texts

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph_core.topology.text_map import TextMap


class TextCodes:
    """The codes of a column that grows. Safe for threads."""

    __slots__ = ("_codes", "_lock", "_map", "_texts", "_view")

    def __init__(self, column: pa.StringArray) -> None:
        codes, distinct = encode(column)
        self._lock = threading.Lock()
        self._codes = GrowingArray(codes)
        self._texts = GrowingColumn(distinct.type)
        self._texts.append(distinct)
        self._view = self._texts.view(len(distinct))
        self._map: TextMap | None = None

    @property
    def nbytes(self) -> int:
        known = 0 if self._map is None else self._map.nbytes
        return self._codes.nbytes + self._texts.nbytes + known + 500

    @property
    def distinct_count(self) -> int:
        """How many texts have a code."""
        return len(self._texts)

    def of(self, column: pa.StringArray) -> tuple[np.ndarray, pa.StringArray]:
        """A code per row of a column that begins or continues the one they were made of.

        int32, -1 for null; and the texts that codes stand for, of which some may be in no row.
        """
        if len(column) > len(self._codes):
            with turn(self._lock):
                if len(column) > len(self._codes):  # nobody else did meanwhile
                    self._add(column.slice(len(self._codes)))
        return self._codes.view(len(column)), self._view

    def _add(self, column: pa.StringArray) -> None:
        codes, distinct = encode(column)
        if self._map is None:
            self._map = map_texts(self._view)
        known = self._map.numbers(self._view, distinct, EVERYTHING)
        is_new = known < 0
        if is_new.any():
            known[is_new] = len(self._view) + np.arange(int(is_new.sum()))
            self._texts.append(distinct.filter(is_new))
            self._view = self._texts.view(len(self._texts))
            self._map = self._map.extended(self._view)
        # -1 picks the last item: the one that is put there for it.
        self._codes.append(np.append(known, np.int32(-1)).take(codes))


def encode(column: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """A code per row, int32 and -1 for null, and the distinct values the codes stand for."""
    encoded = column.dictionary_encode()
    codes = encoded.indices
    numbers = (codes.fill_null(-1) if codes.null_count else codes).to_numpy()
    numbers.flags.writeable = False
    return numbers, encoded.dictionary
