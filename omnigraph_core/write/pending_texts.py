"""The texts whose vectors a branch lacks, some at a time, and a set of keys that tells them apart.

Of ten million texts the keys alone are in memory, with eight bytes each. Two texts with the same
eight bytes count as one here; the backfill that follows compares longer keys, and asks for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.embedding.client import Ask, Task
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.write.embedded import embedded_properties, iter_pending, iter_stale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.write.embedded import EmbeddedProperty

_LOOKUP: Final = 1_000
"""Texts that are looked for in a cache together: their vectors are read, too."""


@dataclass(frozen=True, slots=True)
class PendingText:
    """A row that lacks a vector, and what the vector is to be made of."""

    type_name: str
    id: str
    property: str
    text: str
    key: bytes


def iter_pending_texts(
    context: GraphContext, snapshot: Snapshot, embedder: Embedder
) -> Iterator[tuple[Ask, list[PendingText]]]:
    """The rows that lack a vector, those of one property together, some at a time."""
    nodes = accepted_catalog(snapshot.schema).nodes.values()
    for node in sorted(nodes, key=lambda node: node.name):
        for vectors in embedded_properties(node, embedder):
            entry = snapshot.table(node.table_key)
            table = context.table(entry.location, entry.physical_version)
            ask = Ask(vectors.model, vectors.dimension, Task.DOCUMENT)
            for rows in chain(iter_pending(table, vectors), iter_stale(table, vectors)):
                ids = rows.column("id").to_pylist()
                texts = rows.column(vectors.embedding.source).to_pylist()
                yield ask, _rows(ids, texts, vectors, embedder)


def _rows(
    ids: Sequence[str],
    texts: Sequence[str | None],
    vectors: EmbeddedProperty,
    embedder: Embedder,
) -> list[PendingText]:
    chosen = [(id, text) for id, text in zip(ids, texts, strict=True) if text and text.strip()]
    keys = embedder.keys(
        [text for _, text in chosen],
        dimension=vectors.dimension,
        task=Task.DOCUMENT,
        model=vectors.embedding.model,
    )
    return [
        PendingText(vectors.node.name, id, vectors.name, text, key)
        for (id, text), key in zip(chosen, keys, strict=True)
    ]


def without_cached(ask: Ask, rows: Sequence[PendingText], embedder: Embedder) -> list[PendingText]:
    """The rows whose vectors the cache of the embedder does not have."""
    left: list[PendingText] = []
    for start in range(0, len(rows), _LOOKUP):
        some = rows[start : start + _LOOKUP]
        known = embedder.find_known(
            [row.text for row in some], dimension=ask.dimension, task=ask.task, model=ask.model
        )
        left += [row for row in some if row.text not in known]
    return left


class KeySet:
    """Keys that were seen, by their first eight bytes."""

    def __init__(self, numbers: np.ndarray) -> None:
        self._runs = [np.unique(numbers)]

    def take_new(self, rows: Sequence[PendingText]) -> list[PendingText]:
        """The rows with keys that were not seen before, one for each key; now they were."""
        numbers = key_numbers([row.key for row in rows])
        is_new = np.zeros(len(numbers), bool)
        is_new[np.unique(numbers, return_index=True)[1]] = True
        for run in self._runs:
            if len(run):
                at = np.searchsorted(run, numbers).clip(max=len(run) - 1)
                is_new &= run[at] != numbers
        self._add(np.sort(numbers[is_new]))
        return [row for row, new in zip(rows, is_new.tolist(), strict=True) if new]

    def _add(self, run: np.ndarray) -> None:
        """Runs at least double in length, so that they are few."""
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)


def key_numbers(keys: Sequence[bytes]) -> np.ndarray:
    """The first eight bytes of each key as a number."""
    return np.frombuffer(b"".join(key[:8] for key in keys), np.uint64)
