"""Passes over rows: each row with values is in one of them, equal ones together."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pyarrow as pa

from omnigraph_core.constants import COMPARE_ROWS
from omnigraph_core.evolve.portions import count_passes, in_pass
from tests.support.cases import each

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.utf8(), ["a", "b", "", "a", None, "ä", "a" * 300, "b"]),
    "number": (pa.int64(), [1, -1, 2**62, 1, None, 0, -(2**63), 0]),
    "unsigned": (pa.uint64(), [1, 2**64 - 1, 5, 1, None, 0, 7, 0]),
    "flag": (pa.bool_(), [True, False, True, True, None, False, True, False]),
    "float": (pa.float64(), [0.0, -0.0, 1.5, 1.5, None, 3.0, -3.0, 1e300]),
    "single": (pa.float32(), [0.0, -0.0, 1.5, 1.5, None, 3.0, -3.0, 2.0]),
    "day": (pa.date32(), [dt.date(2024, 1, day) for day in (1, 2, 3, 1, 5, 6, 7, 2)]),
    "moment": (pa.date64(), [dt.date(2024, 1, day) for day in (1, 2, 3, 1, 5, 6, 7, 2)]),
}


def rows() -> pa.Table:
    columns = {name: pa.array(values, type) for name, (type, values) in COLUMNS.items()}
    whole = pa.table({"id": [str(number) for number in range(8)], **columns})
    return pa.concat_tables([whole.slice(0, 3), whole.slice(3)])


@each("group", [*((name,) for name in COLUMNS), ("text", "number", "day")])
@each("passes", [1, 2, 5])
def test_every_row_is_in_one_pass(group: tuple[str, ...], passes: int) -> None:
    seen: dict[Any, set[int]] = {}
    count: Counter[str] = Counter()
    for number in range(passes):
        for row in in_pass(rows(), group, number, passes).to_pylist():
            count[row["id"]] += 1
            # One zero: plus and minus zero are equal.
            key = tuple(value + 0 if isinstance(value, float) else value for value in
                        (row[name] for name in group))  # fmt: skip
            seen.setdefault(key, set()).add(number)
    complete = [row["id"] for row in rows().to_pylist() if None not in (row[n] for n in group)]
    assert count == Counter(complete)
    assert all(len(numbers) == 1 for numbers in seen.values())


def test_rows_spread_over_passes() -> None:
    many = pa.table({"id": [str(number) for number in range(10_000)]})
    sizes = [in_pass(many, ("id",), number, 4).num_rows for number in range(4)]
    assert sum(sizes) == 10_000
    assert min(sizes) > 2_000


def test_passes_follow_the_rows() -> None:
    assert [count_passes(rows) for rows in (0, 1, COMPARE_ROWS.value)] == [1, 1, 1]
    assert count_passes(COMPARE_ROWS.value + 1) == 2
