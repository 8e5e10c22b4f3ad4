"""JSONL in, batches out: lines of a block are read together where they are regular.

Lines the fast path is sure of go there by type; the others are read one by one. Rows of a type come
in the order of their lines. A file whose first record takes several lines is read as a whole.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.violations import Rule
from omnigraph_core.write.batches import LINE, Batch
from omnigraph_core.write.jsonl_blocks import Block, is_record, iter_blocks, lines_of
from omnigraph_core.write.jsonl_document import decoded, encoded, is_document, iter_documents
from omnigraph_core.write.jsonl_exact import ExactReader
from omnigraph_core.write.jsonl_fast import FastReader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import IO

    from omnigraph_core.write.intake import Intake
    from omnigraph_core.write.sources import Source

_DOCUMENTS_PER_BATCH: Final = 20_000


def read_jsonl(intake: Intake) -> Iterator[Batch]:
    """The rows of a JSONL source; what is wrong with it is reported."""
    with intake.source.open() as stream:
        blocks, is_spread = _opened(stream)
        if is_spread:
            yield from _read_documents(intake, _text(blocks))
            return
        reader = _BlockReader(intake)
        for block in blocks:
            yield from reader.read(block)


def raw_lines(source: Source, numbers: Collection[int]) -> Iterator[tuple[int, str]]:
    """The texts of the records that begin at these lines."""
    wanted = np.array(sorted(numbers), dtype=np.int64)
    with source.open() as stream:
        blocks, is_spread = _opened(stream)
        if is_spread:
            for found in iter_documents(_text(blocks)):
                if found.line in numbers:
                    yield found.line, encoded(found.text)
            return
        for block in blocks:
            lines = lines_of(block)
            chosen = lines.where(np.isin(lines.numbers, wanted))
            for number, text in chosen.each():
                yield number, text.rstrip(b"\r\n").decode(errors="replace")


def _opened(stream: IO[bytes]) -> tuple[Iterable[Block], bool]:
    """The blocks of a stream, and whether its records spread over lines."""
    blocks = iter_blocks(stream)
    seen: list[Block] = []
    for block in blocks:
        seen.append(block)
        start = _first_record(block.data)
        if start is not None:
            return chain(seen, blocks), is_document(block.data[start:])
    return seen, False


def _first_record(data: bytes) -> int | None:
    start = 0
    while start < len(data):
        end = data.index(b"\n", start) + 1
        line = data[start:end]
        if is_record(line):
            return end - len(line.lstrip())
        start = end
    return None


def _text(blocks: Iterable[Block]) -> str:
    return decoded(b"".join(block.data for block in blocks))


def _read_documents(intake: Intake, text: str) -> Iterator[Batch]:
    reader = ExactReader(intake)
    pending = 0
    for found in iter_documents(text):
        if found.line in intake.left_out:
            continue
        if found.problem is None:
            reader.add(found.line, found.value)
        else:
            intake.report(Rule.JSON, found.line, f"not valid JSON: {found.problem}")
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
        self._left_out = np.array(sorted(intake.left_out), dtype=np.int64)

    def read(self, block: Block) -> Iterator[Batch]:
        lines = lines_of(block)
        if len(self._left_out):
            lines = lines.where(~np.isin(lines.numbers, self._left_out))
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
