"""The input in parts: sources come in, pieces of a good size for one task each go out, in order.

Lines and row groups can be shared out; a compressed file, one record over many lines, CSV with its
quotes and an Arrow file are read by one task. What no other machine could open is put beside the
graph first.
"""

from __future__ import annotations

import gzip
import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet

from omnigraph_core.spark.ingest.model import Part
from omnigraph_core.storage.inputs import ObjectFile, find_object, is_object_address
from omnigraph_core.write.jsonl_document import is_document
from omnigraph_core.write.slices import LineSlice, RowGroups, open_file
from omnigraph_core.write.sources import Format, look_into

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.storage.scratch import Scratch
    from omnigraph_core.write.batches import Places
    from omnigraph_core.write.sources import Source

PART_BYTES: Final = 64 << 20
_LEAST_BYTES: Final = 16 << 20
_MOST_BYTES: Final = 256 << 20
_MANY_COUNT: Final = 4_096
_GOOD_COUNT: Final = 16
"""Parts that keep some processors busy to the end, and tell how far a load is."""
_PARQUET_MAGIC: Final = b"PAR1"


def split(
    sources: Sequence[Source], places: Places, *, part_bytes: int | None = None
) -> list[Part]:
    """All sources in parts. Each must be a file, as `within_reach` makes them."""
    if part_bytes is None:
        size = sum(source.size for source in sources)
        part_bytes = part_size(size)
    parts: list[Part] = []
    pieces = look_into(sources, lambda source: list(_pieces(source, part_bytes)))
    for index, found in enumerate(pieces):
        for piece in found:
            parts.append(Part(len(parts), index, piece, places.names[index], places.units[index]))
    return parts


def part_size(input_bytes: int) -> int:
    """How large parts of an input are: some thousands of them, so that blocks of keys stay large.

    >>> [part_size(size) >> 20 for size in (1 << 20, 1 << 29, 1 << 36, 1 << 39, 1 << 44)]
    [16, 32, 64, 128, 256]
    """
    usual = min(max(input_bytes // _GOOD_COUNT, _LEAST_BYTES), PART_BYTES)
    return min(max(input_bytes // _MANY_COUNT, usual), _MOST_BYTES)


def within_reach(source: Source, scratch: Scratch) -> Source:
    """The source as a file that every executor can open."""
    if isinstance(source.data, Path):
        return replace(source, data=source.data.absolute())
    if isinstance(source.data, ObjectFile):
        return source
    if isinstance(source.data, pa.Table):
        name = scratch.put("input", _table_bytes(source.data))
    else:
        with source.open() as stream:
            name = scratch.put("input", stream)
    root, path = scratch.address(name)
    if is_object_address(root):
        return replace(source, data=find_object(f"{root.rstrip('/')}/{path}"), start=0)
    return replace(source, data=Path(root, path), start=0)


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _pieces(source: Source, part_bytes: int) -> Iterator[Source]:
    file = source.data
    if not isinstance(file, Path | ObjectFile):
        yield source
    elif source.format is Format.JSONL and _has_lines(source):
        size = source.size
        count = max(1, -(-size // part_bytes))
        bounds = [size * place // count for place in range(count + 1)]
        for start, stop in itertools.pairwise(bounds):
            yield replace(source, data=LineSlice(file, start, stop))
    elif source.format is Format.PARQUET and _is_parquet(file):
        yield from _row_groups(source, file, part_bytes)
    else:
        yield source


def _has_lines(source: Source) -> bool:
    with source.open(is_look=True) as stream:
        return not isinstance(stream, gzip.GzipFile) and not is_document(stream)


def _is_parquet(file: Path | ObjectFile) -> bool:
    with open_file(file, is_look=True) as raw:
        return raw.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _row_groups(source: Source, file: Path | ObjectFile, part_bytes: int) -> Iterator[Source]:
    with open_file(file) as raw:
        try:
            metadata = parquet.ParquetFile(pa.PythonFile(raw, "r")).metadata
        except (pa.ArrowException, OSError):  # the latter also for a footer that is none
            yield source  # whoever reads it says what is wrong
            return
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        sizes = [(group.total_byte_size, group.num_rows) for group in groups]
    if len(sizes) < 2:
        yield source
        return
    chosen: list[int] = []
    for number, (size, _) in enumerate(sizes):
        if chosen and size + sum(sizes[other][0] for other in chosen) > part_bytes:
            yield _of_groups(source, file, chosen, sizes)
            chosen = []
        chosen.append(number)
    yield _of_groups(source, file, chosen, sizes)


def _of_groups(
    source: Source,
    file: Path | ObjectFile,
    chosen: Sequence[int],
    sizes: Sequence[tuple[int, int]],
) -> Source:
    rows = sum(sizes[number][1] for number in chosen)
    return replace(source, data=RowGroups(file, tuple(chosen), rows))
