"""Rows by id that many tasks have read, brought together by ranges of ids.

Every task keeps what it read by ascending id, and returns a few of the ids, evenly spaced. That is
enough to cut all ids into ranges of about as many rows. Ids that are near are mostly stored near
each other: a range touches few pages.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import KnownRows
from omnigraph_core.spark.rows import received_rows, row_blocks
from omnigraph_core.storage.lookup import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omnigraph_core.spark.blocks import Blocks, Received
    from omnigraph_core.spark.merge.views import Job
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.scratch import Scratch

R = TypeVar("R")

OWN: Final = pa.schema([("id", pa.utf8()), (ADDRESS, pa.uint64())])
STAYED: Final = pa.schema([("id", pa.utf8()), ("before", pa.uint64()), ("after", pa.uint64())])

_SAMPLED: Final = 64
"""Ids that a task returns at most."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows by ascending id that a task has read, in one object."""

    what: str
    """Says what rows they are."""
    name: str
    count: int
    sample: tuple[str, ...]
    """Some of their ids, ascending; each stands for about as many rows."""


def put_rows(scratch: Scratch, what: str, rows: pa.Table) -> SortedRows | None:
    """Keep rows with a column `id`; None if there are none."""
    count = rows.num_rows
    if not count:
        return None
    ordered = rows.take(pc.sort_indices(rows.column("id")))
    places = np.linspace(0, count, min(count, _SAMPLED), endpoint=False).astype(np.int64)
    sample = ordered.column("id").take(pa.array(places)).to_pylist()
    return SortedRows(what, scratch.put_tables("rows", {what: ordered}), count, tuple(sample))


def bounds_of(read: Sequence[SortedRows], portion_rows: int) -> tuple[str, ...]:
    """The ids that all ranges but the first begin with: about so many rows are in each."""
    total = sum(part.count for part in read)
    wanted = np.linspace(0, total, -(-total // portion_rows), endpoint=False)[1:]
    ids = sorted((id, part.count / len(part.sample)) for part in read for id in part.sample)
    before = np.cumsum([0.0, *(rows for _, rows in ids)])[:-1]
    places = np.searchsorted(before, wanted)
    return tuple(dict.fromkeys(ids[place][0] for place in places.tolist() if place < len(ids)))


@dataclass(frozen=True, slots=True)
class Portion:
    """The rows of one range of ids."""

    sections: Sequence[str]
    received: Received

    def known(self, what: str) -> KnownRows:
        """What has been read of two versions, by the name it was read under."""
        before, after = self.rows(f"{what} before"), self.rows(f"{what} after")
        return KnownRows(before, after, self.rows(f"{what} stayed", STAYED))

    def rows(self, what: str, schema: pa.Schema = OWN) -> pa.Table:
        """By default ids and addresses of own rows of one version."""
        section = self.sections.index(what) if what in self.sections else -1
        return received_rows(self.received, section, schema)


@dataclass(frozen=True, slots=True)
class Ranges:
    """How rows are cut by id; the same for every task."""

    job: Job
    bounds: tuple[str, ...]
    sections: tuple[str, ...]
    """What rows there are; the number of a section is its place here."""

    def emit(self, name: str) -> Iterator[Blocks]:
        """The rows of an object, by range."""
        for what, rows in self.job.scratch.read_tables(name).items():
            ids = rows.column("id").combine_chunks()
            cuts = [_first_from(ids, bound) for bound in self.bounds]
            yield row_blocks(self.sections.index(what), rows, [0, *cuts, len(ids)])


def _first_from(ids: pa.StringArray, bound: str) -> int:
    """Where the first of ascending ids is that is not below a bound."""
    return bisect_left(range(len(ids)), bound, key=lambda at: ids[at].as_py())


def by_ranges(
    runner: Runner, job: Job, read: Sequence[SortedRows], work: Callable[[Portion], R], *, name: str
) -> list[R]:
    """What `work` returns for each range of ids that has rows, in their order.

    Raises:
        JobFailed: a task could not be carried out.
    """
    sections = tuple(sorted({part.what for part in read}))
    ranges = Ranges(job, bounds_of(read, job.portion_rows), sections)
    names, meet = [part.name for part in read], partial(_meet, work, sections)
    return runner.exchange(ranges.emit, names, meet, len(ranges.bounds) + 1, name=name)


def _meet(
    work: Callable[[Portion], R], sections: Sequence[str], _range: int, received: Received
) -> R:
    return work(Portion(sections, received))
