"""Rows by id that many tasks have read, for others that each work on one range of ids.

Every task leaves what it read by ascending id, in blocks, and says with which id each of them
begins. That is enough to cut all ids into ranges of about as many rows, and to find the blocks of
each range. Ids that are near are mostly stored near each other: a range touches few pages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.candidates import ALL_IDS, IdRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from omnigraph_core.storage.scratch import Scratch

KIND: Final = "rows"


@dataclass(frozen=True, slots=True)
class Run:
    """Rows by ascending id in one object; ids occur once."""

    what: str
    """Says what rows they are."""
    name: str
    firsts: tuple[str, ...]
    """The id with which each block begins."""
    bounds: tuple[int, ...]
    """Where blocks begin and end in the object."""
    rows: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Blocks of a run that may have rows of a range."""

    what: str
    name: str
    start: int
    end: int


def put_run(scratch: Scratch, what: str, rows: pa.Table, block_rows: int) -> Run | None:
    """Keep rows with a column `id`; None if there are none."""
    if not rows.num_rows:
        return None
    ordered = rows.take(pc.sort_indices(rows.column("id"))).combine_chunks()
    starts = range(0, ordered.num_rows, block_rows)
    blocks = [_packed(ordered.slice(start, block_rows)) for start in starts]
    firsts = ordered.column("id").take(pa.array(starts, pa.int64())).to_pylist()
    bounds = np.cumsum([0, *(block.size for block in blocks)]).tolist()
    name = scratch.put(KIND, b"".join(blocks))
    return Run(what, name, tuple(firsts), tuple(bounds), ordered.num_rows)


def ranges_of(runs: Sequence[Run], portion_rows: int) -> list[IdRange]:
    """Ranges of ids with about so many rows each, ascending, that leave none out."""
    count = -(-sum(run.rows for run in runs) // portion_rows)
    if count <= 1:
        return [ALL_IDS]
    firsts = sorted(first for run in runs for first in run.firsts)
    places = np.linspace(0, len(firsts), count, endpoint=False).astype(np.int64)[1:]
    bounds = list(dict.fromkeys(firsts[place] for place in places.tolist()))
    return [IdRange(*ends) for ends in zip([None, *bounds], [*bounds, None], strict=True)]


def slices_of(runs: Iterable[Run], ids: IdRange) -> tuple[Slice, ...]:
    """What of runs has to be read for a range."""
    found = []
    for run in runs:
        # The block before the first that begins in the range may end in it.
        begin = 0 if ids.first is None else max(0, bisect_right(run.firsts, ids.first) - 1)
        end = len(run.firsts) if ids.last is None else bisect_left(run.firsts, ids.last)
        if begin < end:
            found.append(Slice(run.what, run.name, run.bounds[begin], run.bounds[end]))
    return tuple(found)


def read_slices(
    scratch: Scratch, slices: Iterable[Slice], what: str, ids: IdRange, schema: pa.Schema
) -> pa.Table:
    """The rows of one kind with ids of a range."""
    tables = [schema.empty_table()]
    for part in slices:
        if part.what == what:
            content = scratch.read(part.name, part.start, part.end)
            tables += [ids.of(rows).cast(schema) for rows in _unpacked(content)]
    return pa.concat_tables(tables)


def _packed(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _unpacked(blocks: memoryview) -> Iterator[pa.Table]:
    reader = pa.BufferReader(pa.py_buffer(blocks))
    while reader.tell() < len(blocks):
        yield pa.ipc.open_stream(reader).read_all()
