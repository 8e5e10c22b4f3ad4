"""What tells the rows of one write from those of another, in whatever order and parts they come.

Batches come in, a sum of a hash for each row goes out. A job that is run again reads the same rows
in other partitions: the sum is the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pandas.util import hash_array
from pyarrow import types as kinds

if TYPE_CHECKING:
    from collections.abc import Iterable

_ALL: Final = 2**64 - 1
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)


def hash_rows(rows: pa.RecordBatch) -> int:
    """The sum of the hashes of all rows, 64 bits."""
    total = np.zeros(rows.num_rows, np.uint64)
    for field, column in zip(rows.schema, rows.columns, strict=True):
        total += _mixed(_hashes(column) ^ _salt(field.name))
    return int(_mixed(total).sum(dtype=np.uint64))


def join_hashes(sums: Iterable[int]) -> int:
    """The sum of several batches."""
    return sum(sums) & _ALL


def _salt(name: str) -> np.uint64:
    """Equal values of different columns are different."""
    return np.uint64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))


def _hashes(values: pa.Array) -> np.ndarray:
    if kinds.is_list(values.type):
        hashes = _list_hashes(values)
    else:
        plain = values.cast(pa.utf8()) if kinds.is_decimal(values.type) else values
        if kinds.is_temporal(plain.type):
            plain = plain.view(pa.int32() if kinds.is_date32(plain.type) else pa.int64())
        content = plain.drop_null().to_numpy(zero_copy_only=False)
        hashes = np.zeros(len(values), np.uint64)
        hashes[_is_there(values)] = hash_array(content, categorize=False)
    hashes[~_is_there(values)] = _NULL
    return hashes


def _list_hashes(values: pa.Array) -> np.ndarray:
    """Of the members in their order."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    members = _hashes(values.flatten())
    places = np.arange(len(members)) - np.repeat(ends - lengths, lengths)
    sums = np.concatenate(
        [np.zeros(1, np.uint64), np.cumsum(_mixed(members + places.astype(np.uint64)))]
    )
    found: np.ndarray = sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64)
    return found


def _is_there(values: pa.Array) -> np.ndarray:
    there: np.ndarray = values.is_valid().to_numpy(zero_copy_only=False)
    return there


def _mixed(hashes: np.ndarray) -> np.ndarray:
    mixed: np.ndarray = hashes ^ (hashes >> np.uint64(32))
    mixed *= _FACTOR
    mixed ^= mixed >> np.uint64(29)
    return mixed
