"""What the tasks of a backfill do: find rows that lack vectors, ask for them, write rows anew.

Tasks run on executors, and any of them may be done again or twice at once. They know a table by
its place, and rows by their addresses at that version, which they leave for each other beside the
graph. Only the model and the key of the provider are what the settings of the executor say.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.embedding.embedder import Task
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.spark.blocks import Blocks
from omnigraph_core.storage.fragments import write_append
from omnigraph_core.storage.lookup import ADDRESS, iter_taken, spans
from omnigraph_core.storage.places import shared_store
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.staged import remove_rows
from omnigraph_core.write.embedded import (
    TEXT_BYTES,
    embedded_properties,
    iter_pending,
    iter_stale,
    lacking_texts,
    settled,
    with_vectors,
)
from omnigraph_core.write.paid_vectors import KEY_BYTES, PaidVectors, pack_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.spark.blocks import Received
    from omnigraph_core.spark.embed.leases import Share
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.places import TablePlace
    from omnigraph_core.write.embedded import EmbeddedProperty, Made

_PART_BYTES: Final = 64 << 20
"""Of texts and vectors of a part."""
FILLED: Final = "filled"
"""Begins the names of the objects that tell of parts that are done."""


@dataclass(frozen=True, slots=True)
class EmbedJob:
    """What all tasks work by that are done at once."""

    root: str
    """The address of the graph."""
    id: str
    paid: str
    """Of the scratch objects that keep vectors."""
    schema: AcceptedSchema
    share: Share
    part_rows: int
    """Rows whose vectors one task asks for at most."""

    @property
    def scratch(self) -> Scratch:
        return Scratch(shared_store(self.root), self.id)

    def cache(self) -> PaidVectors:
        return PaidVectors(Scratch(shared_store(self.root), self.paid))

    def properties(self, type_name: str, embedder: Embedder) -> list[EmbeddedProperty]:
        node = accepted_catalog(self.schema).nodes[type_name]
        return list(embedded_properties(node, embedder))


@dataclass(frozen=True, slots=True)
class Group:
    """Fragments of a table that one task looks through."""

    type_name: str
    place: TablePlace
    fragment_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lacking:
    """Rows of a group that lack vectors, cut into parts: an object with their addresses, and one
    with the keys of their texts, for each property."""

    addresses: str
    keys: str
    properties: int
    cuts: tuple[int, ...]
    """Where parts begin, and where the last one ends."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the rows of a group that lack vectors."""

    number: int
    type_name: str
    place: TablePlace
    addresses: str
    keys: str
    properties: int
    start: int
    stop: int
    others: tuple[tuple[str, int, int], ...] = ()
    """Where the keys of texts are told that another part asks for: objects, starts and ends."""

    def read_keys(self, scratch: Scratch) -> np.ndarray:
        """Of the texts to ask for, each once, ascending."""
        width = KEY_BYTES * self.properties
        content = scratch.read(self.keys, self.start * width, self.stop * width)
        keys = np.frombuffer(content, np.uint64).reshape(-1, 2)
        return np.unique(keys[keys.any(axis=1)], axis=0)

    def read_others(self, scratch: Scratch) -> set[bytes]:
        found = set()
        for name, start, stop in self.others:
            content = bytes(scratch.read(name, start * KEY_BYTES, stop * KEY_BYTES))
            found |= {content[at : at + KEY_BYTES] for at in range(0, len(content), KEY_BYTES)}
        return found

    def read_addresses(self, scratch: Scratch) -> pa.Array:
        content = scratch.read(self.addresses, self.start * 8, self.stop * 8)
        return pa.array(np.frombuffer(content, np.uint64))


@dataclass(frozen=True, slots=True)
class Written:
    """Rows with their vectors in files that no version refers to, and those they replace."""

    files: str
    replaced: str
    """The object that has their addresses."""
    row_count: int
    vectors_made: int


def find_lacking(job: EmbedJob, group: Group) -> Lacking | None:
    """Find the rows of a group that lack a vector; None if there are none."""
    table, embedder = group.place.open(), job.share.embedder()
    found: list[np.ndarray] = []
    sizes: list[np.ndarray] = []
    keys: list[np.ndarray] = []
    which: list[np.ndarray] = []
    properties = job.properties(group.type_name, embedder)
    for number, vectors in enumerate(properties):
        chosen = (table, vectors, group.fragment_ids)
        for rows in chain(iter_pending(*chosen), iter_stale(*chosen)):
            found.append(rows.column(ADDRESS).to_numpy())
            texts = pc.fill_null(pc.binary_length(rows.column(vectors.embedding.source)), 0)
            sizes.append(texts.to_numpy() + np.int64(4 * vectors.dimension))
            keys.append(_text_keys(rows, vectors, embedder))
            which.append(np.full(rows.num_rows, number))
    if not sum(map(len, found)):
        return None
    addresses, at = np.unique(np.concatenate(found), return_inverse=True)
    widths = np.bincount(at, weights=np.concatenate(sizes)).astype(np.int64)
    ends = [end for _, end in spans(widths, _PART_BYTES, most_rows=job.part_rows)]
    table_keys = np.zeros((len(addresses), len(properties), 2), np.uint64)
    table_keys[at, np.concatenate(which)] = np.concatenate(keys)
    return Lacking(
        job.scratch.put("lacking", addresses.astype(np.uint64).tobytes()),
        job.scratch.put("keys", table_keys.tobytes()),
        len(properties),
        (0, *ends),
    )


def _text_keys(rows: pa.Table, vectors: EmbeddedProperty, embedder: Embedder) -> np.ndarray:
    """Two numbers for each row; zeros where there is no text."""
    texts = [text or "" for text in rows.column(vectors.embedding.source).to_pylist()]
    keys = pack_keys(_keys(texts, vectors, embedder)).copy()
    keys[[not text.strip() for text in texts]] = 0
    return keys


def _keys(texts: Sequence[str], vectors: EmbeddedProperty, embedder: Embedder) -> list[bytes]:
    return embedder.keys(
        texts,
        dimension=vectors.dimension,
        task=Task.DOCUMENT,
        model=vectors.embedding.model,
    )


def emit_keys(job: EmbedJob, partitions: int, part: Part) -> Iterator[Blocks]:
    """The keys of the texts of a part, by partition."""
    keys = part.read_keys(job.scratch)
    firsts = [(number << 64) // partitions for number in range(partitions)]
    ends = np.searchsorted(keys[:, 0], np.array(firsts, np.uint64))
    yield Blocks(0, np.append(ends, len(keys)) * KEY_BYTES, keys)


def find_repeated(
    job: EmbedJob, partition: int, received: Received
) -> list[tuple[int, str, int, int]]:
    """Keys that several parts have: those of all but the first part, by part, in an object."""
    blocks = received[0]
    keys = np.concatenate([np.frombuffer(block, np.uint64).reshape(-1, 2) for _, block in blocks])
    counts = [len(block) // KEY_BYTES for _, block in blocks]
    parts = np.repeat([writer for writer, _ in blocks], counts)
    order = np.lexsort((parts, keys[:, 1], keys[:, 0]))
    keys, parts = keys[order], parts[order]
    is_repeated = np.append(False, (keys[1:] == keys[:-1]).all(axis=1))
    keys, parts = keys[is_repeated], parts[is_repeated]
    if not len(keys):
        return []
    order = np.argsort(parts, kind="stable")
    name = job.scratch.put("repeated", keys[order].tobytes())
    numbers, starts = np.unique(parts[order], return_index=True)
    ends = np.append(starts, len(keys))[1:]
    return [
        (number, name, start, end)
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True)
    ]


def fill(job: EmbedJob, part: Part) -> int:
    """Ask for the vectors that the rows of a part lack and no other part asks for; how many rows
    these are, either way.

    Raises:
        EmbeddingError: a vector could not be made; those that were made are kept.
    """
    cache = job.cache()
    embedder = job.share.embedder(cache)
    try:
        texts: dict[str, list[str]] = {}
        properties = job.properties(part.type_name, embedder)
        table = part.place.open()
        for rows in _iter_texts(table, part.read_addresses(job.scratch), properties):
            for vectors in properties:
                texts.setdefault(vectors.name, []).extend(lacking_texts(rows, vectors))
        others = part.read_others(job.scratch)
        for vectors in properties:
            keys = _keys(texts[vectors.name], vectors, embedder)
            embedder.embed(
                [
                    text
                    for text, key in zip(texts[vectors.name], keys, strict=True)
                    if key[:KEY_BYTES] not in others
                ],
                dimension=vectors.dimension,
                task=Task.DOCUMENT,
                model=vectors.embedding.model,
            )
    finally:
        embedder.close()
    cache.join()
    count = part.stop - part.start
    job.scratch.put(f"{FILLED}-{part.number}-{count}", b"")
    return count


def _iter_texts(
    table: Table, addresses: pa.Array, properties: Sequence[EmbeddedProperty]
) -> Iterator[pa.Table]:
    columns = dict.fromkeys(name for item in properties for name in (*item.columns, item.name))
    return iter_taken(table, addresses, list(columns), portion_bytes=TEXT_BYTES)


def write(job: EmbedJob, part: Part) -> Written | None:
    """Write the rows of a part whose vectors are known, asking nobody; None if there are none."""
    table = part.place.open()
    embedder = job.share.embedder(job.cache())
    try:
        changed = _Changed(table, job.properties(part.type_name, embedder), embedder)
        batches = changed.iter_batches(part.read_addresses(job.scratch))
        first = next(batches, None)
        if first is None:
            return None
        rows = pa.RecordBatchReader.from_batches(table.schema, chain([first], batches))
        files = write_append(table, rows)
    finally:
        embedder.close()
    replaced = np.concatenate(changed.replaced)
    name = job.scratch.put("replaced", replaced.tobytes())
    return Written(files.to_json(), name, len(replaced), changed.vectors_made)


class _Changed:
    """Rows with the vectors they lacked, as far as these are known."""

    def __init__(
        self, table: Table, properties: Sequence[EmbeddedProperty], embedder: Embedder
    ) -> None:
        self._table = table
        self._properties = properties
        self._embedder = embedder
        self.replaced: list[np.ndarray] = []
        """Addresses of the rows that were handed out."""
        self.vectors_made = 0

    def iter_batches(self, addresses: pa.Array) -> Iterator[pa.RecordBatch]:
        """They may have blobs, so they are read a few at a time."""
        start = 0
        for rows in iter_taken(self._table, addresses):
            here = addresses.slice(start, rows.num_rows)
            start += rows.num_rows
            changed, is_settled = self._change(rows)
            if is_settled.any():
                self.replaced.append(here.filter(pa.array(is_settled)).to_numpy())
                yield from changed.filter(pa.array(is_settled)).combine_chunks().to_batches()

    def _change(self, rows: pa.Table) -> tuple[pa.Table, np.ndarray]:
        is_settled = np.zeros(rows.num_rows, bool)
        for vectors in self._properties:
            made = self._known(rows, vectors)
            is_made, is_blank = settled(rows, vectors, made)
            self.vectors_made += int(np.count_nonzero(is_made))
            is_settled |= is_made | is_blank
            rows = with_vectors(rows, vectors, made)
        return rows, is_settled

    def _known(self, rows: pa.Table, vectors: EmbeddedProperty) -> Made:
        return self._embedder.find_known(
            lacking_texts(rows, vectors),
            dimension=vectors.dimension,
            task=Task.DOCUMENT,
            model=vectors.embedding.model,
        )


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows of a group that were written anew: objects with their addresses, and how many."""

    place: TablePlace
    objects: tuple[tuple[str, int], ...]


def remove_replaced(job: EmbedJob, replaced: Replaced) -> tuple[list[str], list[int]]:
    """The fragments of a group without the rows that were written anew, as `remove_rows` tells."""
    scratch = job.scratch
    found = [
        np.frombuffer(scratch.read(name, 0, count * 8), np.uint64)
        for name, count in replaced.objects
    ]
    return remove_rows(replaced.place.open(), pa.array(np.concatenate(found)))
