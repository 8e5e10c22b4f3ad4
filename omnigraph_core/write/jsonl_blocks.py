"""JSONL bytes cut into blocks of whole lines, and where the lines of a block are.

Lines are counted from 1 as an editor counts them, blank and comment lines too. Memory holds a block
or two, or the longest line.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES: Final = 16 << 20
_LONGEST_LINE: Final = 1 << 29
_PARSED_AT_ONCE: Final = 2 << 20
_NEWLINE: Final = 10


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each with its newline, and where each of them ends."""

    data: bytes
    first_line: int
    ends: np.ndarray


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a block: their texts (large_binary, newlines included) and numbers."""

    texts: pa.LargeBinaryArray
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def where(self, mask: np.ndarray) -> Lines:
        """The lines at which the mask is true."""
        if mask.all():
            return self
        return Lines(self.texts.filter(pa.array(mask)), self.numbers[mask])

    def slice(self, start: int, count: int) -> Lines:
        return Lines(self.texts.slice(start, count), self.numbers[start : start + count])

    def joined(self) -> pa.Buffer:
        """The texts one after the other."""
        _, offsets, data = self.texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)
        start = int(ends[self.texts.offset])
        return data.slice(start, int(ends[self.texts.offset + len(self.texts)]) - start)

    def longest(self) -> int:
        _, offsets, _ = self.texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[self.texts.offset :][: len(self.texts) + 1]
        return int(np.diff(ends).max(initial=0))

    def each(self) -> Iterator[tuple[int, bytes]]:
        yield from zip(self.numbers.tolist(), self.texts.to_pylist(), strict=True)


def iter_blocks(
    stream: IO[bytes], size: int = BLOCK_BYTES, *, has_mark: bool = True
) -> Iterator[Block]:
    """The stream in blocks of about so many bytes; a byte order mark at its start is dropped."""
    line = 1
    kept: list[bytes] = []
    data = stream.read(size)
    if has_mark:
        data = data.removeprefix(codecs.BOM_UTF8)
    while data:
        following = stream.read(size)
        if not following and not data.endswith(b"\n"):
            data += b"\n"
        cut = data.rfind(b"\n") + 1
        if cut:
            block = _block(b"".join([*kept, data[:cut]]), line)
            line += len(block.ends)
            yield block
            kept = []
        kept.append(data[cut:])
        data = following


def _block(data: bytes, first_line: int) -> Block:
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + 1
    return Block(data, first_line, ends)


def lines_of(block: Block) -> Lines:
    """All lines of a block; the texts share its memory."""
    count = len(block.ends)
    offsets = np.concatenate([[0], block.ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block.data)]
    texts = pa.Array.from_buffers(pa.large_binary(), count, buffers)
    return Lines(texts, np.arange(count, dtype=np.int64) + block.first_line)


def is_record(text: bytes) -> bool:
    """Whether a line holds something to read: it is neither blank nor a comment."""
    stripped = text.lstrip(b" \t\r\n\x0b\x0c")
    return bool(stripped) and not stripped.startswith(b"//")


def parse_lines(lines: Lines, schema: pa.Schema, *, unexpected: str = "error") -> pa.Table | None:
    """Lines of JSON objects as columns; None if they are not one object each, or do not fit.

    Every line must begin with the brace of an object and end with one, or the count of objects
    would say nothing. `unexpected` tells what members beyond the schema mean.
    """
    longest = lines.longest()
    if longest > _LONGEST_LINE:
        return None
    data = lines.joined()
    block_size = max(_PARSED_AT_ONCE, longest + 1)
    try:
        found = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(
                block_size=block_size, use_threads=data.size > block_size
            ),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=unexpected
            ),
        )
    except pa.ArrowException:
        return None
    return found if found.num_rows == len(lines) else None
