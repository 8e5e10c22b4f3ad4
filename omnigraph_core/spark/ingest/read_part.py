"""One part of the input: read, checked row by row and written, with the reader of every load.

Runs on an executor. Nothing that is written here is referred to by anything: a part may be done
again, or twice at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from omnigraph_core.spark.ingest.keys import key_tables
from omnigraph_core.spark.ingest.model import PartRead
from omnigraph_core.violations import Violations
from omnigraph_core.write.batches import FRESH, Places
from omnigraph_core.write.collect import Reading, collect
from omnigraph_core.write.embed import VectorFiller
from omnigraph_core.write.files import TableFiles
from omnigraph_core.write.progress import Reporter
from omnigraph_core.write.slices import LineSlice, RowGroups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.spark.ingest.model import Job, Part
    from omnigraph_core.storage.scratch import Scratch

READ: Final = "read"
"""The kind of object that a part leaves when it is done."""


def read_part(job: Job, part: Part) -> PartRead:
    """Read a part once: files for its rows, their key columns, and every problem of a row.

    Raises:
        EmbeddingError: a vector could not be made.
    """
    problems = Violations(job.listed)
    reading = _reading(job, part, problems)
    if job.is_dry_run:
        collected = collect(reading, None, None)
    else:
        filler = VectorFiller(job.share.embedder(), job.embed, open_table=job.open)
        with TableFiles(job.open, _nobody) as files:
            collected = collect(reading, files, filler)
    rows = {key: keys.num_rows for key, keys in collected.keys.items() if keys.num_rows}
    kind = f"{READ}-{part.number}-{sum(rows.values())}"
    keys = job.scratch.put_tables(kind, key_tables(collected))
    return PartRead(
        part.number,
        part.source_index,
        _line_count(part),
        rows,
        {key: files.to_json() for key, files in collected.files.items()},
        keys,
        problems,
        {key: pc.sum(pc.invert(k.column(FRESH))).as_py() or 0 for key, k in collected.keys.items()},
        tuple(collected.types),
        collected.embedded,
        collected.pending,
        _size(part),
    )


def up_to_breaks(read: Iterable[PartRead], scratch: Scratch) -> Iterator[PartRead]:
    """The parts as if each source was read in one go, which ends at what cannot be read.

    Args:
        scratch: keeps that there are no keys of parts that nobody would have come to.
    """
    broken: set[int] = set()
    for part in read:
        if part.source_index in broken:
            keys = scratch.put_tables(f"{READ}-{part.number}-0", {})
            yield PartRead(
                part.number, part.source_index, part.line_count, {}, {}, keys, Violations(), {}, ()
            )
            continue
        if any(problem.line is None for problem in part.problems.listed):
            broken.add(part.source_index)
        yield part


def _reading(job: Job, part: Part, problems: Violations) -> Reading:
    return Reading(
        (part.source,),
        job.catalog,
        Places((part.name,), (part.unit,)),
        problems,
        Reporter(None),
        is_tolerant=job.is_tolerant,
        only=job.only,
    )


def _line_count(part: Part) -> int:
    data = part.source.data
    if isinstance(data, LineSlice):
        return data.line_count
    return data.row_count if isinstance(data, RowGroups) else 0


def _size(part: Part) -> int:
    data = part.source.data
    return data.stop - data.start if isinstance(data, LineSlice) else 0


def _nobody(rows: int) -> None:
    """Rows are told of when the part is done."""
