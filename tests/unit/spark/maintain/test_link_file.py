"""Arrays in parts: what is summed of parts is the sum of the whole, wherever they are cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.spark.maintain import link_file
from omnigraph_core.spark.maintain.link_tasks import Arranged, Plan, Summed
from omnigraph_core.storage.array_file import (
    PiecedArray,
    pack_arrays,
    pack_pieces,
    parse_arrays,
    sum_of,
)


class Memory:
    """Scratch objects in memory."""

    def __init__(self, *contents: bytes) -> None:
        self._contents = contents

    def read(self, name: str, start: int, end: int) -> memoryview:
        return memoryview(self._contents[int(name)])[start:end]


numbers = st.lists(st.integers(-1, 2**31 - 1), max_size=30)


@given(st.lists(numbers, min_size=1, max_size=6))
def test_numbers(parts: list[list[int]]) -> None:
    arrays = [np.array(part, np.int32) for part in parts]
    scratch = cast("Any", Memory(*(array.tobytes() for array in arrays)))
    summed = [Summed.of(array, str(place), 0) for place, array in enumerate(arrays)]
    made = link_file._numbers(scratch, "it", summed)
    whole = np.concatenate(arrays)
    assert (made.shape, made.sum) == (whole.shape, sum_of(whole))
    found = parse_arrays(b"".join(pack_pieces([made], {"a": 1})))
    assert found is not None
    np.testing.assert_array_equal(found.arrays["it"], whole)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=1, max_size=6))
def test_offsets(degrees: list[list[int]]) -> None:
    parts, contents = [], []
    for place, counts in enumerate(degrees):
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        contents.append(offsets[:-1].tobytes())
        total = int(offsets[:-1].sum())
        fake = SimpleNamespace(
            name=str(place),
            node_count=len(counts),
            entry_count=int(offsets[-1]),
            offset_sum=total,
        )
        parts.append(cast("Arranged", fake))
    made = link_file._offsets(cast("Any", Memory(*contents)), "it", parts)
    flat = [count for counts in degrees for count in counts]
    whole = np.concatenate([[0], np.cumsum(flat)]).astype(np.int64)
    assert (made.shape, made.sum) == (whole.shape, sum_of(whole))
    assert b"".join(made.pieces) == whole.tobytes()


def test_a_file_in_pieces_is_the_same_file() -> None:
    arrays = {"a": np.arange(7, dtype=np.int32), "b": np.arange(6.0).reshape(2, 3)}
    pieced = [
        PiecedArray("a", "<i4", (7,), sum_of(arrays["a"]), [b"", arrays["a"].tobytes()]),
        PiecedArray(
            "b",
            "<f8",
            (2, 3),
            sum_of(arrays["b"]),
            [arrays["b"][:1].tobytes(), arrays["b"][1:].tobytes()],
        ),
    ]
    assert b"".join(pack_pieces(pieced, {"x": 1})) == b"".join(
        bytes(piece) for piece in pack_arrays(arrays, {"x": 1})
    )
    short = PiecedArray("a", "<i4", (7,), 0, [b"1234"])
    with pytest.raises(InvariantBroken, match="the pieces of `a`"):
        list(pack_pieces([short], {}))


def test_parts_of_a_plan() -> None:
    plan = Plan("/g", "job", 3, 11, 4, {"src": 0, "dst": 9}, {"src": 1, "dst": 3}, {})
    assert (plan.edge_parts, plan.node_parts("src"), plan.node_parts("dst")) == (3, 1, 3)
