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
from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.arrow import origin_column
from omnigraph_core.storage.fragments import combine, write_append
from omnigraph_core.storage.lookup import ADDRESS, find_rows, find_where, iter_taken, spans
from omnigraph_core.storage.staged import stage_replace
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.embed import clear_vectors, put_vectors
from omnigraph_core.write.progress import Reporter, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Embedding, NodeType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.fragments import StagedFragments
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.progress import Listener

PART_ROWS: Final = 20_000
"""Rows a backfill commits at a time."""

_PART_BYTES: Final = 64 * 2**20
"""Of texts and vectors of such rows."""

_TEXT_BYTES: Final = 16 * 2**20
"""Of texts that are looked at together."""


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
class BackfillResult:
    """How many vectors were written, with which commits."""

    branch: str
    vectors_made: int
    commits: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "vectors_made": self.vectors_made,
            "commits": list(self.commits),
        }


@dataclass(frozen=True, slots=True)
class _Vectors:
    """One embedded property of a table."""

    node: NodeType
    name: str
    embedding: Embedding
    model: str

    @property
    def dimension(self) -> int:
        dimension = self.node.properties[self.name].type.dimension
        assert dimension is not None  # a vector has one
        return dimension

    @property
    def columns(self) -> tuple[str, str]:
        return self.embedding.source, origin_column(self.name)

    def stand_in(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot has the property, made of the same text in the same way."""
        node = accepted_catalog(snapshot.schema).nodes.get(self.node.name)
        return (
            node is not None
            and node.embeddings.get(self.name) == self.embedding
            and node.properties[self.name].type == self.node.properties[self.name].type
        )


def embedding_status(
    context: GraphContext, snapshot: Snapshot, embedder: Embedder
) -> tuple[EmbeddingStatus, ...]:
    """The state of every embedded property, by type and property."""
    found = []
    for vectors in _embedded(snapshot, embedder):
        table = _open(context, snapshot, vectors.node.table_key)
        pending = sum(rows.num_rows for rows in _iter_pending(table, vectors))
        present, stale = _count_present(table, vectors)
        found.append(
            EmbeddingStatus(
                vectors.node.name, vectors.name, vectors.model, present - stale, pending, stale
            )
        )
    return tuple(found)


def _embedded(snapshot: Snapshot, embedder: Embedder) -> Iterator[_Vectors]:
    catalog = accepted_catalog(snapshot.schema)
    for node in sorted(catalog.nodes.values(), key=lambda node: node.name):
        for name, embedding in sorted(node.embeddings.items()):
            yield _Vectors(node, name, embedding, embedder.model_for(embedding.model))


def _open(context: GraphContext, snapshot: Snapshot, table_key: str) -> Table:
    entry = snapshot.table(table_key)
    return context.table(entry.location, entry.physical_version)


def _iter_pending(table: Table, vectors: _Vectors) -> Iterator[pa.Table]:
    """Ids and texts of the rows with a text and no vector."""
    source = vectors.embedding.source
    for rows in _iter_where(table, f"`{vectors.name}` IS NULL", ["id", source]):
        has_text = pc.not_equal(pc.utf8_trim_whitespace(rows.column(source)), "")
        yield rows.filter(pc.fill_null(has_text, fill_value=False))


def _iter_where(table: Table, where: str, columns: list[str]) -> Iterator[pa.Table]:
    """Rows that a filter holds for, some at a time.

    A scan would run ahead, and hold much of a table of long texts.
    """
    found = find_where(table, where, [], has_addresses=True).column(ADDRESS)
    return iter_taken(table, found, columns, portion_bytes=_TEXT_BYTES)


def _count_present(table: Table, vectors: _Vectors) -> tuple[int, int]:
    """How many rows have a vector, and how many of these are stale."""
    where = f"`{vectors.name}` IS NOT NULL AND `{origin_column(vectors.name)}` IS NULL"
    present = find_where(table, where, [], has_addresses=True).num_rows
    stale = 0
    for rows in _iter_made(table, vectors):
        present += rows.num_rows
        stale += int(np.count_nonzero(_stale(rows, vectors)))
    return present, stale


def _iter_made(table: Table, vectors: _Vectors) -> Iterator[pa.Table]:
    """Ids, texts and origins of the rows whose vector was made."""
    where = f"`{origin_column(vectors.name)}` IS NOT NULL"
    return _iter_where(table, where, ["id", *vectors.columns])


def _stale(rows: pa.Table, vectors: _Vectors) -> np.ndarray:
    """Which rows have a vector that was made of something else than their text is now."""
    source, origin = vectors.columns
    texts, origins = rows.column(source).to_pylist(), rows.column(origin).to_pylist()
    return np.array(
        [
            made is not None and (text is None or fingerprint(vectors.model, text) != made)
            for text, made in zip(texts, origins, strict=True)
        ],
        dtype=bool,
    )


def backfill(
    context: GraphContext,
    options: WriteOptions,
    embedder: Embedder,
    *,
    progress: Listener | None = None,
) -> BackfillResult:
    """Make every vector of a branch that is pending or stale.

    Raises:
        EmbeddingError, ConfigError: a vector could not be made; those of earlier parts are kept.
    """
    reporter = Reporter(progress)
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


def _lacking(table: Table, vectors: _Vectors) -> Iterator[pa.ChunkedArray]:
    """Ids of the rows whose vector is pending or stale, those of one commit together."""
    ids = [pa.array([], pa.utf8())]
    sizes = [np.array([], np.int64)]
    for rows in chain(_iter_pending(table, vectors), _iter_stale(table, vectors)):
        ids += rows.column("id").chunks
        texts = pc.fill_null(pc.binary_length(rows.column(vectors.embedding.source)), 0)
        sizes.append(texts.to_numpy() + np.int64(4 * vectors.dimension))
    found = pa.chunked_array(ids)
    for start, end in spans(np.concatenate(sizes), _PART_BYTES, most_rows=PART_ROWS):
        yield found.slice(start, end - start)


def _iter_stale(table: Table, vectors: _Vectors) -> Iterator[pa.Table]:
    for rows in _iter_made(table, vectors):
        yield rows.filter(pa.array(_stale(rows, vectors)))


class _Part:
    """Rows of one backfill commit, and the vectors of their texts."""

    def __init__(self, context: GraphContext, vectors: _Vectors, ids: pa.ChunkedArray) -> None:
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
        lacking = rows.filter(pa.array(self._lacking(rows)))
        texts = lacking.column(self._vectors.embedding.source).to_pylist()
        return [text for text in texts if text and text.strip()]

    def _find(self, table: Table) -> pa.Table:
        """What says of each row whether it lacks a vector, and where it is."""
        columns = [*self._vectors.columns, self._vectors.name]
        return find_rows(table, "id", self._ids, columns, has_addresses=True)

    def _lacking(self, rows: pa.Table) -> np.ndarray:
        is_null = pc.is_null(rows.column(self._vectors.name)).to_numpy()
        return np.asarray(_stale(rows, self._vectors) | is_null)

    def prepare(self, state: CatalogState) -> Prepared:
        """Put the vectors into the rows as they are now; a text that changed waits its turn."""
        snapshot, key = state.snapshot, self._vectors.node.table_key
        self.vectors_made = 0
        if not self._vectors.stand_in(snapshot):
            return Prepared((), (), {})  # nobody wants them any more
        table = _open(self._context, snapshot, key)
        rows = self._find(table)
        is_made, is_blank = self._settled(rows)
        self.vectors_made = int(np.count_nonzero(is_made))
        replaced = rows.column(ADDRESS).filter(pa.array(is_made | is_blank))
        del rows
        staged = self._stage(table, replaced)
        changes = () if staged is None else (UpdateTable.of(key, staged, TableOperation.UPSERT),)
        touched = [change.table_key for change in changes]
        return Prepared(changes, requirements_of(snapshot, touched=touched), {})

    def _settled(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Which rows get a vector, and which lose one because they have no text any more."""
        texts = rows.column(self._vectors.embedding.source).to_pylist()
        has_made = np.array([text in self._made for text in texts], dtype=bool)
        has_none = np.array([not (text and text.strip()) for text in texts], dtype=bool)
        return has_made & self._lacking(rows), has_none & _stale(rows, self._vectors)

    def _stage(self, table: Table, replaced: pa.ChunkedArray) -> Table | None:
        """The rows at these addresses with their vectors, in place of what they are.

        They may have blobs, so they are read and written a few at a time.
        """

        def written(rows: pa.Table) -> StagedFragments:
            return write_append(table, self._changed(rows))

        parts = map(written, iter_taken(table, replaced))  # a loop would hold rows a turn longer
        return stage_replace(table, combine(table, parts), replaced)

    def _changed(self, rows: pa.Table) -> pa.Table:
        name = self._vectors.name
        is_made, is_blank = self._settled(rows)
        chosen = rows.column(self._vectors.embedding.source).filter(pa.array(is_made)).to_pylist()
        if chosen:
            origins = [fingerprint(self._vectors.model, text) for text in chosen]
            vectors = np.stack([self._made[text] for text in chosen])
            rows = put_vectors(rows, name, pa.array(is_made), vectors, origins)
        return clear_vectors(rows, name, pa.array(is_blank)) if is_blank.any() else rows
