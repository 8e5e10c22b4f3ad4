"""Rows of the input with given values, wherever they were read: values in, rows by part out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.spark.ingest.buckets import bucket_of, read_bucket
from omnigraph_core.spark.ingest.inspect import PART
from omnigraph_core.spark.ingest.keys import CLAIMED, ROW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.spark.ingest.model import Job, Keys


@dataclass(frozen=True, slots=True)
class Search:
    """Values to find in one bucket, by the name of the keys they stand in."""

    bucket: int
    given: tuple[tuple[int, Keys], ...]
    values: Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Hits:
    """By the name of the keys: rows, as `(part, row)`, and ids that only refused records have."""

    rows: dict[str, pa.Table]
    claimed: dict[str, pa.Array]


def searches(
    job: Job, given: tuple[tuple[int, Keys], ...], values: Mapping[str, pa.Array]
) -> Iterator[Search]:
    """The buckets to look into, each with its own values."""
    places = {name: bucket_of(found, job.bucket_count) for name, found in values.items()}
    for bucket in sorted({int(b) for found in places.values() for b in np.unique(found)}):
        yield Search(
            bucket,
            given,
            {name: values[name].filter(pa.array(places[name] == bucket)) for name in values},
        )


def find_rows_of_input(job: Job, search: Search) -> Hits:
    """The rows of a bucket that have one of the values."""
    rows, claimed = {}, {}
    for name, parts in read_bucket(job.scratch, search.given, search.bucket).items():
        values = search.values.get(name)
        if values is None or not len(values):
            continue
        tables = [
            found.select(["id", ROW]).append_column(
                PART, pa.array(np.full(found.num_rows, part, np.int32))
            )
            for part, found in parts
        ]
        hits = pa.concat_tables(tables)
        hits = hits.filter(pc.is_in(hits.column("id"), value_set=values))
        is_claimed = pc.equal(hits.column(ROW), CLAIMED)
        claimed[name] = pc.unique(hits.filter(is_claimed).column("id"))
        rows[name] = hits.filter(pc.invert(is_claimed)).select([PART, ROW])
    return Hits(rows, claimed)
