"""Lists of deleted rows: bitmaps of every form, against sets of numbers."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.storage.deleted_rows import parse_roaring

PLACES = st.integers(0, 200_000)
RUNS = st.tuples(PLACES, st.integers(1, 9_000)).map(lambda run: range(run[0], sum(run)))
NUMBERS = st.tuples(st.lists(PLACES, max_size=40), st.lists(RUNS, max_size=4)).map(
    lambda parts: sorted({*parts[0], *(number for run in parts[1] for number in run)})
)


def packed(numbers: list[int], *, has_runs: bool) -> bytes:
    """A bitmap as its specification says."""
    groups: dict[int, list[int]] = {}
    for number in numbers:
        groups.setdefault(number >> 16, []).append(number & 0xFFFF)
    heads, bodies = b"", []
    for high, lows in groups.items():
        heads += struct.pack("<HH", high, len(lows) - 1)
        bodies.append(_runs(lows) if has_runs else _plain(lows))
    if has_runs:
        flags = np.packbits(np.ones(len(groups), bool), bitorder="little").tobytes()
        start = struct.pack("<I", 12347 | (len(groups) - 1) << 16) + flags + heads
        if len(groups) < 4:
            return start + b"".join(bodies)
    else:
        start = struct.pack("<II", 12346, len(groups)) + heads
    first = len(start) + 4 * len(groups)
    places = np.cumsum([first, *(len(body) for body in bodies)])[:-1]
    return start + places.astype("<u4").tobytes() + b"".join(bodies)


def _plain(lows: list[int]) -> bytes:
    if len(lows) <= 4096:
        return np.array(lows, "<u2").tobytes()
    bits = np.zeros(2**16, bool)
    bits[lows] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _runs(lows: list[int]) -> bytes:
    runs: list[list[int]] = []
    for low in lows:
        if runs and runs[-1][0] + runs[-1][1] + 1 == low:
            runs[-1][1] += 1
        else:
            runs.append([low, 0])
    return struct.pack("<H", len(runs)) + np.array(runs, "<u2").tobytes()


@given(NUMBERS, st.booleans())
def test_every_number_is_found_again(numbers: list[int], has_runs: bool) -> None:
    content = packed(numbers, has_runs=has_runs and bool(numbers))
    found = parse_roaring(content)
    assert found is not None
    assert found.tolist() == numbers
    assert found.dtype == np.uint32


@pytest.mark.parametrize("content", [b"", b"\0" * 40, packed([1, 2, 70_000], has_runs=False)[:-3]])
def test_what_is_no_bitmap_is_told(content: bytes) -> None:
    assert parse_roaring(content) is None
