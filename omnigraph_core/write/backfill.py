"""Vectors of a live graph: which are ready, pending or stale, and making those that are not ready.

A backfill goes part by part, a commit for each, so that what was paid for is kept if it stops. Each
commit puts vectors only where the text they were made from still stands. Of a whole table no more
than ids are in memory.
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
from omnigraph_core.job_report import SparkResult, spark_member
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.arrow import origin_column
from omnigraph_core.storage.fragments import combine, write_append
from omnigraph_core.storage.lookup import ADDRESS, find_rows, find_where, iter_taken, spans
from omnigraph_core.storage.staged import stage_replace
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.embedded import (
    embedded_properties,
    is_stale,
    iter_made,
    iter_pending,
    iter_stale,
    lacking_texts,
    settled,
    with_vectors,
)
from omnigraph_core.write.progress import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.fragments import StagedFragments
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.embedded import EmbeddedProperty
    from omnigraph_core.write.progress import Reporter

PART_ROWS: Final = 20_000
"""Rows a backfill commits at a time."""

_PART_BYTES: Final = 64 * 2**20
"""Of texts and vectors of such rows."""


@dataclass(frozen=True, slots=True)
class EmbeddingStatus:
    """How many vectors of a property are as they should be.

    `ready` ones were given, or made of the present text by the present model; `pending` ones are to
    be made; `stale` ones were made of another text or by another model.
    """

    type_name: str
    property: str
    model: str
    ready: int
    pending: int
    stale: int

    def to_json(self) -> dict[str, object]:
        return {
            "type": self.type_name,
            "property": self.property,
            "model": self.model,
            "ready": self.ready,
            "pending": self.pending,
            "stale": self.stale,
        }


@dataclass(frozen=True, slots=True)
class BackfillResult(SparkResult):
    """How many vectors were written, with which commits."""

    branch: str
    vectors_made: int
    commits: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "vectors_made": self.vectors_made,
            "commits": list(self.commits),
            **spark_member(self),
        }


def embedding_status(
    context: GraphContext, snapshot: Snapshot, embedder: Embedder
) -> tuple[EmbeddingStatus, ...]:
    """The state of every embedded property, by type and property."""
    found = []
    for vectors in _embedded(snapshot, embedder):
        table = _open(context, snapshot, vectors.node.table_key)
        pending = sum(rows.num_rows for rows in iter_pending(table, vectors))
        present, stale = _count_present(table, vectors)
        found.append(
            EmbeddingStatus(
                vectors.node.name, vectors.name, vectors.model, present - stale, pending, stale
            )
        )
    return tuple(found)


def _embedded(snapshot: Snapshot, embedder: Embedder) -> Iterator[EmbeddedProperty]:
    catalog = accepted_catalog(snapshot.schema)
    for node in sorted(catalog.nodes.values(), key=lambda node: node.name):
        yield from embedded_properties(node, embedder)


def _open(context: GraphContext, snapshot: Snapshot, table_key: str) -> Table:
    entry = snapshot.table(table_key)
    return context.table(entry.location, entry.physical_version)


def _count_present(table: Table, vectors: EmbeddedProperty) -> tuple[int, int]:
    """How many rows have a vector, and how many of these are stale."""
    where = f"`{vectors.name}` IS NOT NULL AND `{origin_column(vectors.name)}` IS NULL"
    present = find_where(table, where, [], has_addresses=True).num_rows
    stale = 0
    for rows in iter_made(table, vectors):
        present += rows.num_rows
        stale += int(np.count_nonzero(is_stale(rows, vectors)))
    return present, stale


def backfill(
    context: GraphContext, options: WriteOptions, embedder: Embedder, reporter: Reporter
) -> BackfillResult:
    """Make every vector of a branch that is pending or stale.

    Raises:
        EmbeddingError, ConfigError: a vector could not be made; those of earlier parts are kept.
    """
    _, state = context.head(options.branch)
    made, commits = 0, []
    for vectors in _embedded(state.snapshot, embedder):
        table = _open(context, state.snapshot, vectors.node.table_key)
        for ids in _lacking(table, vectors):
            part = _Part(context, vectors, ids)
            part.embed(context.base(options.branch)[1].snapshot, embedder, reporter)
            landed = commit_write(context, options, "embed", part.prepare, is_rerunnable=True)
            if landed.commit is not None:
                made += part.vectors_made
                commits.append(landed.commit.graph_commit_id)
    return BackfillResult(options.branch, made, tuple(commits))


def _lacking(table: Table, vectors: EmbeddedProperty) -> Iterator[pa.ChunkedArray]:
    """Ids of the rows whose vector is pending or stale, those of one commit together."""
    ids = [pa.array([], pa.utf8())]
    sizes = [np.array([], np.int64)]
    for rows in chain(iter_pending(table, vectors), iter_stale(table, vectors)):
        ids += rows.column("id").chunks
        texts = pc.fill_null(pc.binary_length(rows.column(vectors.embedding.source)), 0)
        sizes.append(texts.to_numpy() + np.int64(4 * vectors.dimension))
    found = pa.chunked_array(ids)
    for start, end in spans(np.concatenate(sizes), _PART_BYTES, most_rows=PART_ROWS):
        yield found.slice(start, end - start)


class _Part:
    """Rows of one backfill commit, and the vectors of their texts."""

    def __init__(
        self, context: GraphContext, vectors: EmbeddedProperty, ids: pa.ChunkedArray
    ) -> None:
        self._context = context
        self._vectors = vectors
        self._ids = ids
        self._made: dict[str, np.ndarray] = {}
        self.vectors_made = 0

    def embed(self, snapshot: Snapshot, embedder: Embedder, reporter: Reporter) -> None:
        """Make the vectors that the rows lack in a snapshot."""
        texts = self._texts(snapshot)
        made = embedder.embed(
            texts,
            dimension=self._vectors.dimension,
            task=Task.DOCUMENT,
            model=self._vectors.embedding.model,
            on_done=lambda count: reporter.add(Step.EMBEDDED, count),
        )
        self._made = dict(zip(texts, made, strict=True))

    def _texts(self, snapshot: Snapshot) -> list[str]:
        if not self._vectors.stand_in(snapshot):
            return []
        rows = self._find(_open(self._context, snapshot, self._vectors.node.table_key))
        return lacking_texts(rows, self._vectors)

    def _find(self, table: Table) -> pa.Table:
        """What says of each row whether it lacks a vector, and where it is."""
        columns = [*self._vectors.columns, self._vectors.name]
        return find_rows(table, "id", self._ids, columns, has_addresses=True)

    def prepare(self, state: CatalogState) -> Prepared:
        """Put the vectors into the rows as they are now; a text that changed waits its turn."""
        snapshot, key = state.snapshot, self._vectors.node.table_key
        self.vectors_made = 0
        if not self._vectors.stand_in(snapshot):
            return Prepared((), (), {})  # nobody wants them any more
        table = _open(self._context, snapshot, key)
        rows = self._find(table)
        is_made, is_blank = settled(rows, self._vectors, self._made)
        self.vectors_made = int(np.count_nonzero(is_made))
        replaced = rows.column(ADDRESS).filter(pa.array(is_made | is_blank))
        del rows
        staged = self._stage(table, replaced)
        changes = () if staged is None else (UpdateTable.of(key, staged, TableOperation.UPSERT),)
        touched = [change.table_key for change in changes]
        return Prepared(changes, requirements_of(snapshot, touched=touched), {})

    def _stage(self, table: Table, replaced: pa.ChunkedArray) -> Table | None:
        """The rows at these addresses with their vectors, in place of what they are.

        They may have blobs, so they are read and written a few at a time.
        """

        def written(rows: pa.Table) -> StagedFragments:
            return write_append(table, with_vectors(rows, self._vectors, self._made))

        parts = map(written, iter_taken(table, replaced))  # a loop would hold rows a turn longer
        return stage_replace(table, combine(table, parts), replaced)
