"""What merges and diffs read of an S3 store: as much as was changed, however large the graph is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.merge.data import Scale
from benchmarks.merge.reads import ADOPT, CELLS, FAST_FORWARD, NO_DATA, measure

if TYPE_CHECKING:
    from benchmarks.merge.reads import Measured, Reading
    from tests.support.s3 import S3Server

SMALL, LARGE = Scale(3_000, 2_000), Scale(30_000, 20_000)
MOST_GROWTH = 3
"""Times what the small graph takes, that the large one may: it has ten times the rows."""
PAGE_BYTES = 8 * 1024
"""What is read of a column, about, for one value in it."""
FORWARD_REQUESTS = 40
"""Whatever the size: catalogs and commits alone are looked at."""


@pytest.fixture(scope="module")
def measured(s3_server: S3Server) -> Measured:
    return measure(s3_server, (SMALL, LARGE))


def pairs(measured: Measured) -> dict[str, tuple[Reading, Reading]]:
    small, large = measured[SMALL.rows], measured[LARGE.rows]
    assert small.keys() == large.keys()
    return {name: (small[name], large[name]) for name in small}


@pytest.mark.parametrize("name", sorted(NO_DATA))
def test_what_is_taken_over_is_not_read(name: str, measured: Measured) -> None:
    for reading in (readings[name] for readings in measured.values()):
        assert reading.data_bytes == 0
        assert reading.requests <= FORWARD_REQUESTS


def test_bytes_follow_the_change(measured: Measured) -> None:
    grown = {
        name: (small.data_bytes, large.data_bytes)
        for name, (small, large) in pairs(measured).items()
        if large.data_bytes > _most(small.data_bytes, CELLS.get(name, 0) * PAGE_BYTES)
    }
    assert grown == {}


def test_requests_follow_the_change(measured: Measured) -> None:
    grown = {
        name: (small.requests, large.requests)
        for name, (small, large) in pairs(measured).items()
        if large.requests > _most(small.requests, CELLS.get(name, 0))
    }
    assert grown == {}


def _most(small: int, whole_rows: int) -> int:
    """What is allowed; where values of whole rows are needed, at most those in addition."""
    return max(MOST_GROWTH * small, small + whole_rows)


def test_catalogs_do_not_grow_with_the_rows(measured: Measured) -> None:
    for name in (FAST_FORWARD, ADOPT):
        small, large = pairs(measured)[name]
        assert large.other_bytes <= MOST_GROWTH * small.other_bytes
