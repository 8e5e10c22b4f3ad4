"""The file of links out of parts: what tasks have left comes in, the file readers map goes out.

It is the file that a reader would write for itself, byte for byte (`topology/link_files`). No
array of it is ever whole in memory; sums of whole arrays follow from those of their parts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.array_file import PiecedArray, sum_of
from omnigraph_core.storage.row_space import fragment_states

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.spark.maintain.link_tasks import Arranged, Settled, Summed
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.derived import DerivedFiles
    from omnigraph_core.storage.scratch import Scratch

KIND: Final = "links"
_FORMAT: Final = 1
_ALL: Final = 2**64 - 1
_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class LinkTables:
    """The tables of an edge type; those of the nodes may be one and the same."""

    edges: Table
    sources: Table
    targets: Table

    @property
    def all(self) -> tuple[Table, Table, Table]:
        return self.edges, self.sources, self.targets


def links_key(tables: LinkTables) -> str:
    """The name of the file, by the versions of the tables."""
    prefix = tables.edges.location.replace("/", "_")
    text = "\n".join(f"{table.location}@{table.physical_version}" for table in tables.all)
    digest = hashlib.sha256(f"{_FORMAT}\n{text}".encode()).hexdigest()
    return f"{prefix}.{digest[:32]}"


def keep_links(
    files: DerivedFiles,
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
    about = {
        "format": _FORMAT,
        "edges": _told(tables.edges),
        "sources": _told(tables.sources),
        "targets": _told(tables.targets),
        "is_simple": [all(part.is_simple for part in parts) for parts in (out, into)],
    }
    files.keep(KIND, links_key(tables), arrays, about, tables.all)


def _told(table: Table) -> dict[str, object]:
    states = fragment_states(table)
    return {
        "location": table.location,
        "version": str(table.physical_version),
        "fragments": [[state.id, state.files, state.deletion, state.rows] for state in states],
    }


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
