"""Rows as blocks: each arrives where it is for, in its order, and costs little more than itself."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.spark.maintain.link_tasks import partition_of
from omnigraph_core.spark.rows import received_rows, row_blocks, spread_rows
from omnigraph_core.spark.runner import InProcessRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.spark.blocks import Blocks, Received

COUNT = 5
SCHEMA = pa.schema([("id", pa.utf8()), ("row", pa.int32())])


def numbered(numbers: range) -> pa.Table:
    return pa.table([[f"n{number}" for number in numbers], numbers], schema=SCHEMA)


def test_rows_arrive_in_the_order_of_their_tasks() -> None:
    def emit(numbers: range) -> Iterator[Blocks]:
        at = np.array(numbers) % COUNT
        yield spread_rows(7, numbered(numbers), at, COUNT)

    def meet(partition: int, received: Received) -> tuple[int, list[int], int]:
        rows, others = (received_rows(received, section, SCHEMA) for section in (7, 8))
        return (
            partition,
            rows.column("row").to_pylist(),
            others.num_rows,
        )

    tasks = [range(50, 100), range(0), range(50), range(3)]
    found = InProcessRunner().exchange(emit, tasks, meet, COUNT, name="it")
    expected: dict[int, list[int]] = defaultdict(list)
    for numbers in tasks:
        for number in numbers:
            expected[number % COUNT].append(number)
    assert found == [(partition, expected[partition], 0) for partition in range(COUNT)]


def test_rows_that_are_cut_already() -> None:
    rows = pa.concat_tables([numbered(range(3)), numbered(range(3, 10))])
    ends = [0, 0, 4, 10, 10]
    blocks = row_blocks(0, rows, ends)
    sizes = np.diff(blocks.ends)
    assert [bool(size) for size in sizes] == [False, True, True, False]
    content = memoryview(pa.py_buffer(blocks.content))
    for place, (start, end) in enumerate(pairwise(blocks.ends.tolist())):
        found = {0: [(0, bytes(content[start:end]))]} if end > start else {}
        expected = rows.slice(ends[place], ends[place + 1] - ends[place])
        assert received_rows(found, 0, SCHEMA).equals(expected.combine_chunks())


def test_every_attempt_emits_the_same_small_blocks() -> None:
    rows, at = numbered(range(1000)), np.arange(1000) % 100
    first, second = (spread_rows(0, rows, at, 100) for _ in range(2))
    assert bytes(first.content) == bytes(second.content)
    assert first.ends.tolist() == second.ends.tolist()
    assert np.diff(first.ends).max() < 450


def test_equal_ids_meet_however_they_are_cut() -> None:
    ids = [f"n{number}" for number in range(50)]
    whole = partition_of(pa.chunked_array([ids]), COUNT)
    parted = partition_of(pa.chunked_array([ids[:7], [], ids[7:]], pa.utf8()), COUNT)
    sliced = partition_of(pa.chunked_array([["x", *ids]]).slice(1), COUNT)
    assert whole.tolist() == parted.tolist() == sliced.tolist()
    assert len(set(whole.tolist())) == COUNT
    assert not len(partition_of(pa.chunked_array([], pa.utf8()), COUNT))
