"""Vectors of a live graph: which are ready, pending or stale, and making those that are not ready.

A backfill goes part by part, a commit for each, so that what was paid for is kept if it stops. Each
commit puts vectors only where the text they were made from still stands.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from omnigraph_core.storage.lookup import ADDRESS, find_rows, find_where, iter_rows
from omnigraph_core.storage.staged import stage_replace
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.embed import clear_vectors, put_vectors
from omnigraph_core.write.progress import Reporter, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Embedding, NodeType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.progress import Listener

PART_ROWS: Final = 20_000
"""Rows a backfill commits at a time."""


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


def embedding_status(
    context: GraphContext, snapshot: Snapshot, embedder: Embedder
) -> tuple[EmbeddingStatus, ...]:
    """The state of every embedded property, by type and property."""
    found = []
    for vectors in _embedded(snapshot, embedder):
        table = _open(context, snapshot, vectors.node.table_key)
        pending = len(_pending(table, vectors, ()))
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


def _pending(table: Table, vectors: _Vectors, columns: Sequence[str]) -> pa.Table:
    """Rows with a text and no vector."""
    source = vectors.embedding.source
    where = f"`{vectors.name}` IS NULL AND `{source}` IS NOT NULL"
    rows = find_where(table, where, [source, *columns], has_addresses=True)
    has_text = pc.not_equal(pc.utf8_trim_whitespace(rows.column(source)), "")
    return rows.filter(has_text)


def _count_present(table: Table, vectors: _Vectors) -> tuple[int, int]:
    """How many rows have a vector, and how many of these are stale."""
    where = f"`{vectors.name}` IS NOT NULL AND `{origin_column(vectors.name)}` IS NULL"
    given = find_where(table, where, [], has_addresses=True).num_rows
    made = stale = 0
    for batch in iter_rows(table, vectors.columns):
        has_origin = pc.is_valid(batch.column(1))
        made += pc.sum(has_origin).as_py() or 0
        stale += int(np.count_nonzero(_stale(batch, vectors)))
    return given + made, stale


def _stale(batch: pa.RecordBatch | pa.Table, vectors: _Vectors) -> np.ndarray:
    """Which rows have a vector that was made of something else than their text is now."""
    source, origin = vectors.columns
    texts, origins = batch.column(source).to_pylist(), batch.column(origin).to_pylist()
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
        lacking = _lacking(table, vectors)
        for start in range(0, lacking.num_rows, PART_ROWS):
            part = _Part(context, vectors, lacking.slice(start, PART_ROWS))
            part.embed(embedder, reporter)
            landed = commit_write(context, options, "embed", part.prepare, is_rerunnable=True)
            if landed.commit is not None:
                made += part.vectors_made
                commits.append(landed.commit.graph_commit_id)
    return BackfillResult(options.branch, made, tuple(commits))


def _lacking(table: Table, vectors: _Vectors) -> pa.Table:
    """Ids and texts of the rows whose vector is pending or stale."""
    columns = ["id", vectors.embedding.source]
    parts = [_pending(table, vectors, ["id"]).select(columns)]
    for batch in iter_rows(table, ["id", *vectors.columns]):
        stale = pa.Table.from_batches([batch]).filter(pa.array(_stale(batch, vectors)))
        parts.append(stale.select(columns))
    return pa.concat_tables(parts)


class _Part:
    """Rows of one backfill commit, and the vectors of their texts."""

    def __init__(self, context: GraphContext, vectors: _Vectors, rows: pa.Table) -> None:
        self._context = context
        self._vectors = vectors
        self._ids = rows.column("id").combine_chunks()
        self._texts = [text for text in rows.column(1).to_pylist() if text and text.strip()]
        self._made: dict[str, np.ndarray] = {}
        self.vectors_made = 0

    def embed(self, embedder: Embedder, reporter: Reporter) -> None:
        made = embedder.embed(
            self._texts,
            dimension=self._vectors.dimension,
            task=Task.DOCUMENT,
            model=self._vectors.embedding.model,
            on_done=lambda count: reporter.add(Step.EMBEDDED, count),
        )
        self._made = dict(zip(self._texts, made, strict=True))

    def prepare(self, state: CatalogState) -> Prepared:
        """Put the vectors into the rows as they are now; a text that changed waits its turn."""
        snapshot, key = state.snapshot, self._vectors.node.table_key
        table = _open(self._context, snapshot, key)
        rows = find_rows(table, "id", self._ids, table.schema.names, has_addresses=True)
        addresses = rows.column(ADDRESS)
        changed, written = self._changed(rows.drop_columns([ADDRESS]))
        mask = pa.array(written)
        staged = stage_replace(table, changed.filter(mask), addresses.filter(mask))
        changes = () if staged is None else (UpdateTable.of(key, staged, TableOperation.UPSERT),)
        touched = [change.table_key for change in changes]
        return Prepared(changes, requirements_of(snapshot, touched=touched), {})

    def _changed(self, rows: pa.Table) -> tuple[pa.Table, np.ndarray]:
        name, source = self._vectors.name, self._vectors.embedding.source
        stale = _stale(rows, self._vectors)
        lacking = stale | pc.is_null(rows.column(name)).to_numpy()
        texts = rows.column(source).to_pylist()
        is_made = np.array([text in self._made for text in texts], dtype=bool) & lacking
        is_blank = np.array([not (text and text.strip()) for text in texts], dtype=bool) & stale
        chosen = [text for text, wanted in zip(texts, is_made, strict=True) if wanted]
        self.vectors_made = len(chosen)
        if chosen:
            origins = [fingerprint(self._vectors.model, text) for text in chosen]
            vectors = np.stack([self._made[text] for text in chosen])
            rows = put_vectors(rows, name, pa.array(is_made), vectors, origins)
        if is_blank.any():
            rows = clear_vectors(rows, name, pa.array(is_blank))
        return rows, is_made | is_blank
