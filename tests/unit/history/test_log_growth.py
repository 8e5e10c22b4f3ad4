"""Which fragments of a log are merged when it is full, and what that costs in the long run."""

from __future__ import annotations

import math
import random

from omnigraph_core.storage.log import merge_start
from tests.support.cases import each

MOST = 64


def grow(batches: list[int]) -> tuple[list[int], int, int]:
    """Append batches; the fragments at the end, the most at any time, the rows rewritten."""
    sizes: list[int] = []
    most = rewritten = 0
    for rows in batches:
        if len(sizes) + 1 > MOST:
            start = merge_start(sizes, MOST - 1)
            rewritten += sum(sizes[start:])
            sizes = [*sizes[:start], sum(sizes[start:])]
        sizes.append(rows)
        most = max(most, len(sizes))
    return sizes, most, rewritten


GENERATOR = random.Random(7)
SHAPES = {
    "ones": [1] * 20_000,
    "few": [GENERATOR.randint(1, 32) for _ in range(20_000)],
    "bursts": [10_000 if n % 50 == 0 else 1 for n in range(5_000)],
    "shrinking": [5_000 - n for n in range(5_000)],
    "growing": list(range(1, 5_000)),
    "one huge first": [1_000_000, *[1] * 5_000],
    "one huge late": [*[1] * 5_000, 1_000_000, *[1] * 5_000],
}


@each("shape", SHAPES)
def test_a_row_is_rewritten_a_logarithmic_number_of_times(shape: str) -> None:
    batches = SHAPES[shape]
    sizes, most, rewritten = grow(batches)
    assert sum(sizes) == sum(batches)
    assert most <= MOST
    assert rewritten <= sum(batches) * (math.log(sum(batches), 1.5) + 1)


def test_most_appends_rewrite_nothing() -> None:
    sizes: list[int] = []
    merges = 0
    for _ in range(20_000):
        if len(sizes) + 1 > MOST:
            merges += 1
            start = merge_start(sizes, MOST - 1)
            sizes = [*sizes[:start], sum(sizes[start:])]
        sizes.append(1)
    assert merges < 20_000 / 40


@each(
    ("sizes", "most", "start"),
    [
        ([1, 1, 1, 1], 3, 0),
        ([9, 1, 1, 1], 3, 1),
        ([100, 50, 9, 2, 1], 4, 3),
        ([100, 50, 9, 2, 1], 3, 2),
        ([100, 50, 9, 2, 1], 1, 0),
        ([100, 50, 9, 2, 1], 0, 0),
        ([7], 1, 0),
    ],
)
def test_merge_start(sizes: list[int], most: int, start: int) -> None:
    assert merge_start(sizes, most) == start
