"""Distinct texts with numbers: a text comes in, its number goes out, found by halving.

Numbers are given in order of arrival and never change when texts are added; a second array has them
in the order of their bytes. All is plain arrays, so that it can be mapped from a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FEW: Final = 1_000
"""Texts that are looked up, and put in their places, one by one rather than with all others."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    data: np.ndarray
    """uint8, the texts in UTF-8, one after another."""
    offsets: np.ndarray
    """int64, one more than there are texts."""
    order: np.ndarray
    """int32, numbers of the texts, in the order of their bytes."""

    def __len__(self) -> int:
        return len(self.order)

    @property
    def is_whole(self) -> bool:
        return len(self.offsets) == len(self) + 1 and self.offsets[-1] == len(self.data)

    def find(self, text: str) -> int:
        """The number of a text, -1 if it has none."""
        wanted = text.encode()
        place = self._place(wanted)
        if place < len(self.order):
            number = int(self.order[place])
            if self._bytes(number) == wanted:
                return number
        return -1

    def texts(self) -> pa.LargeStringArray:
        """All texts by number, not copied."""
        buffers = pa.py_buffer(self.offsets), pa.py_buffer(self.data)
        return pa.LargeStringArray.from_buffers(len(self), *buffers)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"text_data": self.data, "text_offsets": self.offsets, "text_order": self.order}

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray]) -> Lexicon:
        return Lexicon(arrays["text_data"], arrays["text_offsets"], arrays["text_order"])

    def _place(self, wanted: bytes) -> int:
        """Where in the order a text is or belongs."""
        low, high = 0, len(self.order)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(int(self.order[middle])) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _bytes(self, number: int) -> bytes:
        return self.data[self.offsets[number] : self.offsets[number + 1]].tobytes()


def extended_lexicon(
    base: Lexicon, columns: Sequence[pa.StringArray]
) -> tuple[Lexicon, tuple[np.ndarray, ...]]:
    """The lexicon with the texts of some columns, and each column as numbers (int32)."""
    encoded = pa.concat_arrays(columns).cast(pa.large_string()).dictionary_encode()
    texts: pa.LargeStringArray = encoded.dictionary
    numbers = _found(base, texts)
    is_new = numbers < 0
    numbers[is_new] = len(base) + np.arange(int(is_new.sum()))
    places = numbers.take(encoded.indices.to_numpy())
    bounds = np.cumsum([len(column) for column in columns])[:-1]
    added = texts.filter(pa.array(is_new))
    return _with(base, added), tuple(np.split(places, bounds))


def _found(base: Lexicon, texts: pa.LargeStringArray) -> np.ndarray:
    """The numbers of texts, int32, -1 where they have none."""
    if len(texts) <= _FEW:
        return np.array([base.find(text) for text in texts.to_pylist()], np.int32)
    places = pc.index_in(texts, value_set=base.texts())
    found: np.ndarray = pc.fill_null(places, -1).to_numpy().copy()
    return found


def _with(base: Lexicon, added: pa.LargeStringArray) -> Lexicon:
    if not len(added):
        return base
    plain = pa.concat_arrays([added])  # begins at the start of its buffers
    offsets = np.frombuffer(plain.buffers()[1], np.int64)[: len(plain) + 1]
    data = np.frombuffer(plain.buffers()[2] or b"", np.uint8)[: offsets[-1]]
    grown = Lexicon(
        np.concatenate([base.data, data]),
        np.concatenate([base.offsets, base.offsets[-1] + offsets[1:]]),
        np.empty(len(base) + len(plain), np.int32),
    )
    if len(added) <= _FEW and len(base) > _FEW:
        order = _inserted(base, added)
    else:
        order = pc.array_sort_indices(grown.texts()).to_numpy().astype(np.int32)
    return Lexicon(grown.data, grown.offsets, order)


def _inserted(base: Lexicon, added: pa.LargeStringArray) -> np.ndarray:
    ascending = sorted((text.encode(), place) for place, text in enumerate(added.to_pylist()))
    places = [base._place(text) for text, _ in ascending]
    numbers = [len(base) + place for _, place in ascending]
    return np.insert(base.order, places, numbers)
