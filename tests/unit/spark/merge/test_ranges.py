"""Rows by ranges of ids: what many tasks have read meets by id, as many rows in each range."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.spark.merge.ranges import (
    OWN,
    STAYED,
    Portion,
    SortedRows,
    bounds_of,
    by_ranges,
    put_rows,
)
from omnigraph_core.spark.merge.views import Job
from omnigraph_core.spark.runner import InProcessRunner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.storage.scratch import Scratch


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(str(tmp_path), "job", 100)


def own(numbers: Sequence[int]) -> pa.Table:
    return pa.table([[f"é{number:05}" for number in numbers], list(numbers)], schema=OWN)


def put(scratch: Scratch, what: str, rows: pa.Table) -> SortedRows:
    kept = put_rows(scratch, what, rows)
    assert kept is not None
    return kept


def of_portion(portion: Portion) -> tuple[list[list[str]], int]:
    known = portion.known("pair")
    tables = known.before, known.after, known.stayed
    ids = [table.column("id").to_pylist() for table in tables]
    return ids, portion.rows("nothing of the kind").num_rows


def test_rows_with_one_id_meet_in_one_range(job: Job) -> None:
    before = [put(job.scratch, "pair before", own(range(900, start, -2))) for start in (0, 300)]
    after = put(job.scratch, "pair after", own(range(1000)))
    stayed = pa.table([["é00500", "éz"], [1, 2], [3, 4]], schema=STAYED)
    read = [*before, after, put(job.scratch, "pair stayed", stayed)]
    found = by_ranges(InProcessRunner(), job, read, of_portion, name="it")
    assert len(found) == 18, "1752 rows"
    seen: dict[str, int] = {}
    for place, (sides, nothing) in enumerate(found):
        assert not nothing
        assert 50 <= sum(map(len, sides)) <= 200
        for id in {id for side in sides for id in side}:
            assert seen.setdefault(id, place) == place
    assert [id for (_, ids, _), _ in found for id in ids] == own(range(1000))["id"].to_pylist()
    assert sum(len(ids) for (ids, _, _), _ in found) == sum(part.count for part in before)
    assert [ids for (_, _, ids), _ in found if ids] == [["é00500"], ["éz"]]


def test_few_ids_are_returned_of_many_rows(job: Job) -> None:
    assert put_rows(job.scratch, "it", own(())) is None
    many, few = (put(job.scratch, "it", own(range(count))) for count in (10_000, 3))
    assert (many.count, len(many.sample), many.sample[:2]) == (10_000, 64, ("é00000", "é00156"))
    assert (few.count, few.sample) == (3, ("é00000", "é00001", "é00002"))


def test_ids_count_by_the_rows_they_stand_for() -> None:
    large = SortedRows("it", "a", 6400, tuple(f"a{number:02}" for number in range(64)))
    small = SortedRows("it", "b", 64, tuple(f"b{number:02}" for number in range(64)))
    cut = partial(bounds_of, [large, small])
    assert cut(10_000) == ()
    assert cut(3232) == ("a33",)
    assert all(bound.startswith("a") for bound in cut(700))
    assert bounds_of([], 10) == ()


def test_a_bound_occurs_once() -> None:
    same = [SortedRows("it", str(number), 10, ("a", "b")) for number in range(5)]
    assert bounds_of(same, 1) == ("a", "b")
