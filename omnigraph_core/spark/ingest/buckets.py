"""Key rows by bucket: tables come in, one object with a block of each bucket goes out, and back.

Rows with the same text are in the same bucket, whoever wrote them. A block names the tables in it,
so that a reader asks for one range of each object.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.topology.text_hash import hash_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omnigraph_core.storage.scratch import Scratch

_LENGTH: Final = Struct("<Q")
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Keys:
    """An object of rows by bucket: `bounds[b]` to `bounds[b + 1]` are the bytes of bucket b."""

    name: str
    bounds: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.bounds[-1]


def put_keys(
    scratch: Scratch, kind: str, tables: Mapping[str, tuple[pa.Table, np.ndarray]], count: int
) -> Keys:
    """Keep rows by bucket.

    Args:
        tables: by name the rows, and the bucket of each of them.
    """
    blocks: list[list[tuple[str, pa.Buffer]]] = [[] for _ in range(count)]
    for name, (rows, buckets) in sorted(tables.items()):
        for bucket, part in _split(rows, buckets, count):
            blocks[bucket].append((name, _packed(part)))
    pieces, bounds = [], [0]
    for block in blocks:
        pieces.append(_block(block))
        bounds.append(bounds[-1] + len(pieces[-1]))
    return Keys(scratch.put(kind, b"".join(pieces)), tuple(bounds))


def read_bucket(
    scratch: Scratch, objects: Iterable[tuple[int, Keys]], bucket: int
) -> dict[str, list[tuple[int, pa.Table]]]:
    """The rows of a bucket: by name, with the number of the writer each table came from."""
    found: dict[str, list[tuple[int, pa.Table]]] = defaultdict(list)
    for number, keys in objects:
        start, end = keys.bounds[bucket], keys.bounds[bucket + 1]
        if end > start:
            for name, rows in _unpacked(scratch.read(keys.name, start, end)):
                found[name].append((number, rows))
    return found


def bucket_of(texts: pa.Array | pa.ChunkedArray, count: int) -> np.ndarray:
    """The bucket of each text; of a null any."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    hashes = [hash_texts(chunk) for chunk in chunks]
    return _within(np.concatenate(hashes) if hashes else np.zeros(0, np.uint64), count)


def bucket_of_tuples(columns: Sequence[pa.Array], count: int) -> np.ndarray:
    """The bucket of each tuple of texts."""
    total = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        total = (total ^ hash_texts(column)) * _MIX
    return _within(total >> np.uint64(16), count)


def _within(hashes: np.ndarray, count: int) -> np.ndarray:
    return (hashes % np.uint64(count)).astype(np.uint16)


def _split(rows: pa.Table, buckets: np.ndarray, count: int) -> Iterable[tuple[int, pa.Table]]:
    if not rows.num_rows:
        return
    order = np.argsort(buckets, kind="stable")
    ends = np.cumsum(np.bincount(buckets, minlength=count))
    ordered = rows.take(pa.array(order)).combine_chunks()
    start = 0
    for bucket, end in enumerate(ends.tolist()):
        if end > start:
            yield bucket, ordered.slice(start, end - start)
        start = end


def _packed(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _block(tables: Sequence[tuple[str, pa.Buffer]]) -> bytes:
    if not tables:
        return b""
    header = json.dumps([[name, content.size] for name, content in tables]).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *(content for _, content in tables)])


def _unpacked(block: memoryview) -> Iterable[tuple[str, pa.Table]]:
    (length,) = _LENGTH.unpack_from(block)
    at = _LENGTH.size + length
    for name, size in json.loads(bytes(block[_LENGTH.size : at])):
        yield name, pa.ipc.open_stream(pa.py_buffer(block[at : at + size])).read_all()
        at += size


def without_nulls(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows that have a value in each of these columns."""
    for name in columns:
        if rows.column(name).null_count:
            rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows
