"""JSONL in, batches out: lines of a block are read together where they are regular.

Lines the fast path is sure of go there by type; the others are read one by one. Rows of a type come
in the order of their lines. An array, or a file whose first record takes several lines, is read
record by record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.violations import Rule
from omnigraph_core.write.batches import LINE, Batch
from omnigraph_core.write.jsonl_blocks import Block, is_record, iter_blocks, lines_of
from omnigraph_core.write.jsonl_document import encoded, is_document, iter_documents, unit_of
from omnigraph_core.write.jsonl_exact import ExactReader
from omnigraph_core.write.jsonl_fast import FastReader
from omnigraph_core.write.slices import LineSlice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import IO

    from omnigraph_core.write.intake import Intake
    from omnigraph_core.write.sources import Source

_DOCUMENTS_PER_BATCH: Final = 20_000


def read_jsonl(intake: Intake) -> Iterator[Batch]:
    """The rows of a JSONL source; what is wrong with it is reported."""
    is_slice = isinstance(intake.source.data, LineSlice)
    with intake.source.open() as stream:
        is_spread = not is_slice and is_document(stream)
    with intake.source.open() as stream:
        if is_spread:
            yield from _read_documents(intake, stream)
            return
        reader = _BlockReader(intake)
        for block in iter_blocks(stream, has_mark=_may_have_mark(intake.source)):
            yield from reader.read(block)


def _may_have_mark(source: Source) -> bool:
    """Whether the bytes begin where a file does: only there a byte order mark means nothing."""
    return not isinstance(source.data, LineSlice) or source.data.start == 0


def raw_lines(source: Source, numbers: Collection[int]) -> Iterator[tuple[int, str]]:
    """The texts of the records at these places, in the order of the input."""
    with source.open() as stream:
        is_spread = is_document(stream)
    unit = unit_of(source) if is_spread else ""
    with source.open() as stream:
        if is_spread:
            yield from _raw_documents(stream, numbers, unit)
            return
        wanted = np.array(sorted(numbers), dtype=np.int64)
        for block in iter_blocks(stream):
            lines = lines_of(block)
            chosen = lines.where(np.isin(lines.numbers, wanted))
            for number, text in chosen.each():
                yield number, text.rstrip(b"\r\n").decode(errors="replace")


def _raw_documents(
    stream: IO[bytes], numbers: Collection[int], unit: str
) -> Iterator[tuple[int, str]]:
    for found in iter_documents(stream):
        place = found.place(unit)
        if place is not None and place in numbers:
            yield place, encoded(found.text)


def _read_documents(intake: Intake, stream: IO[bytes]) -> Iterator[Batch]:
    reader = ExactReader(intake)
    unit = intake.places.units[intake.index]
    pending = 0
    for found in iter_documents(stream):
        place = found.place(unit)
        if place is None or found.problem is not None:
            intake.report(Rule.JSON, place, f"not valid JSON: {found.problem}")
        else:
            reader.add(place, found.value)
        pending += 1
        if pending == _DOCUMENTS_PER_BATCH:
            intake.count_read(pending)
            pending = 0
            yield from reader.take()
    intake.count_read(pending)
    yield from reader.take()


class _BlockReader:
    """Reads blocks of lines, each line the fast way or the exact one."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._fast = FastReader(intake)
        self._exact = ExactReader(intake)

    def read(self, block: Block) -> Iterator[Batch]:
        lines = lines_of(block)
        batches = list(self._fast.read(lines))
        count = sum(batch.rows.num_rows for batch in batches)
        for number, text in self._fast.take_doubtful():
            if is_record(text):
                self._exact.add_line(number, text)
                count += 1
        batches += self._exact.take()
        self._intake.count_read(count)
        yield from _in_order(batches)


def _in_order(batches: Iterable[Batch]) -> Iterator[Batch]:
    """One batch per type, its rows by line."""
    parts: dict[str, list[Batch]] = {}
    for batch in batches:
        parts.setdefault(batch.type.table_key, []).append(batch)
    for same in parts.values():
        rows = pa.concat_tables([batch.rows for batch in same]) if len(same) > 1 else same[0].rows
        at = rows.column(LINE).to_numpy()
        if (np.diff(at) < 0).any():
            rows = rows.take(pa.array(np.argsort(at, kind="stable")))
        yield Batch(same[0].type, rows)
