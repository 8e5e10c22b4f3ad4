"""The file of links out of parts: what tasks have left comes in, the file readers map goes out.

It is the file that a reader would write for itself, byte for byte (`topology/link_files`). No
array of it is ever whole in memory; sums of whole arrays follow from those of their parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.array_file import PiecedArray, sum_of
from omnigraph_core.storage.derived import DerivedFiles
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.topology.link_files import KIND, about_links

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.spark.maintain.link_tasks import Arranged, Settled, Summed
    from omnigraph_core.storage.scratch import Scratch
    from omnigraph_core.topology.link_files import LinkTables

_ALL: Final = 2**64 - 1
_WORD: Final = 8


def keep_links(
    tables: LinkTables,
    scratch: Scratch,
    settled: Sequence[Settled],
    out: Sequence[Arranged],
    into: Sequence[Arranged],
) -> None:
    """Put the file together and keep it.

    Raises:
        StorageError: it cannot be written.
    """
    arrays = [
        _numbers(scratch, "sources", [part.ends[0] for part in settled]),
        _numbers(scratch, "targets", [part.ends[1] for part in settled]),
    ]
    for direction, parts in (("out", out), ("in", into)):
        arrays += [
            _offsets(scratch, f"{direction}.offsets", parts),
            _numbers(scratch, f"{direction}.targets", [part.targets for part in parts]),
            _numbers(scratch, f"{direction}.edges", [part.edges for part in parts]),
        ]
    names = [(item.location, item.physical_version, fragment_states(item)) for item in tables.all]
    is_simple = [all(part.is_simple for part in parts) for parts in (out, into)]
    files = DerivedFiles(tables.edges.store)
    files.keep(KIND, tables.key, arrays, about_links(names, is_simple), tables.all)


def _numbers(scratch: Scratch, name: str, parts: Sequence[Summed]) -> PiecedArray:
    """An array of 32-bit numbers; parts may begin in the midst of a word of the sum."""
    length = total = 0
    for part in parts:
        low, high = (part.even, part.odd) if length % 2 == 0 else (part.odd, part.even)
        total += low + (high << 32)
        length += part.length
    if length % 2:  # the last number is half a word, of which bytes are summed
        last = next(part.last for part in reversed(parts) if part.length)
        total += sum_of(np.array([last], np.uint32)) - last
    pieces = (part.read(scratch) for part in parts if part.length)
    return PiecedArray(name, "<i4", (length,), total & _ALL, pieces)


def _offsets(scratch: Scratch, name: str, parts: Sequence[Arranged]) -> PiecedArray:
    """Where the entries of each node begin among all of them, and where the last ones end."""
    total = begin = 0
    for part in parts:
        total += part.offset_sum + begin * part.node_count
        begin += part.entry_count
    count = sum(part.node_count for part in parts)
    return PiecedArray(name, "<i8", (count + 1,), (total + begin) & _ALL, _shifted(scratch, parts))


def _shifted(scratch: Scratch, parts: Sequence[Arranged]) -> Iterator[bytes]:
    begin = 0
    for part in parts:
        if part.node_count:
            offsets = np.frombuffer(scratch.read(part.name, 0, _WORD * part.node_count), np.int64)
            yield (offsets + begin).tobytes()
        begin += part.entry_count
    yield np.int64(begin).tobytes()
