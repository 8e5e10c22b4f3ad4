"""Embedded properties of a table: which rows lack a vector, and rows with the vectors they lacked.

A row lacks a vector if there is none, or if the one it has was made of something else than its text
is now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.schema.arrow import origin_column
from omnigraph_core.storage.lookup import ADDRESS, find_where, iter_taken
from omnigraph_core.write.embed import clear_vectors, put_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Embedding, NodeType
    from omnigraph_core.storage.dataset import Table

    Made = Mapping[str, np.ndarray]
    """Vectors by text."""

TEXT_BYTES: Final = 16 * 2**20
"""Of texts that are looked at together."""


@dataclass(frozen=True, slots=True)
class EmbeddedProperty:
    """A vector that is made of a text, and the model that makes it."""

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


def embedded_properties(node: NodeType, embedder: Embedder) -> Iterator[EmbeddedProperty]:
    for name, embedding in sorted(node.embeddings.items()):
        yield EmbeddedProperty(node, name, embedding, embedder.model_for(embedding.model))


def iter_pending(
    table: Table, vectors: EmbeddedProperty, fragment_ids: Sequence[int] | None = None
) -> Iterator[pa.Table]:
    """Ids, texts and addresses of the rows with a text and no vector."""
    source = vectors.embedding.source
    where = f"`{vectors.name}` IS NULL"
    for rows in _iter_where(table, where, ["id", source], fragment_ids):
        has_text = pc.not_equal(pc.utf8_trim_whitespace(rows.column(source)), "")
        yield rows.filter(pc.fill_null(has_text, fill_value=False))


def iter_made(
    table: Table, vectors: EmbeddedProperty, fragment_ids: Sequence[int] | None = None
) -> Iterator[pa.Table]:
    """Ids, texts, origins and addresses of the rows whose vector was made."""
    where = f"`{origin_column(vectors.name)}` IS NOT NULL"
    return _iter_where(table, where, ["id", *vectors.columns], fragment_ids)


def iter_stale(
    table: Table, vectors: EmbeddedProperty, fragment_ids: Sequence[int] | None = None
) -> Iterator[pa.Table]:
    for rows in iter_made(table, vectors, fragment_ids):
        yield rows.filter(pa.array(is_stale(rows, vectors)))


def _iter_where(
    table: Table, where: str, columns: list[str], fragment_ids: Sequence[int] | None
) -> Iterator[pa.Table]:
    """Rows that a filter holds for, some at a time.

    A scan would run ahead, and hold much of a table of long texts.
    """
    found = find_where(table, where, [], has_addresses=True, fragment_ids=fragment_ids)
    addresses = found.column(ADDRESS)
    start = 0
    for rows in iter_taken(table, addresses, columns, portion_bytes=TEXT_BYTES):
        yield rows.append_column(ADDRESS, addresses.slice(start, rows.num_rows))
        start += rows.num_rows


def is_stale(rows: pa.Table, vectors: EmbeddedProperty) -> np.ndarray:
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


def is_lacking(rows: pa.Table, vectors: EmbeddedProperty) -> np.ndarray:
    """Which rows have no vector, or a stale one."""
    is_null = pc.is_null(rows.column(vectors.name)).to_numpy()
    return np.asarray(is_stale(rows, vectors) | is_null)


def lacking_texts(rows: pa.Table, vectors: EmbeddedProperty) -> list[str]:
    """What the vectors that rows lack are to be made of."""
    lacking = rows.filter(pa.array(is_lacking(rows, vectors)))
    texts = lacking.column(vectors.embedding.source).to_pylist()
    return [text for text in texts if text and text.strip()]


def settled(rows: pa.Table, vectors: EmbeddedProperty, made: Made) -> tuple[np.ndarray, np.ndarray]:
    """Which rows get a vector, and which lose one because they have no text any more."""
    texts = rows.column(vectors.embedding.source).to_pylist()
    has_made = np.array([text in made for text in texts], dtype=bool)
    has_none = np.array([not (text and text.strip()) for text in texts], dtype=bool)
    return has_made & is_lacking(rows, vectors), has_none & is_stale(rows, vectors)


def with_vectors(rows: pa.Table, vectors: EmbeddedProperty, made: Made) -> pa.Table:
    """The rows with the vectors they lack, and without those of texts that are gone."""
    is_made, is_blank = settled(rows, vectors, made)
    chosen = rows.column(vectors.embedding.source).filter(pa.array(is_made)).to_pylist()
    if chosen:
        origins = [fingerprint(vectors.model, text) for text in chosen]
        values = np.stack([made[text] for text in chosen])
        rows = put_vectors(rows, vectors.name, pa.array(is_made), values, origins)
    return clear_vectors(rows, vectors.name, pa.array(is_blank)) if is_blank.any() else rows
