"""Vectors for texts: rows come in, the same rows go out with the vectors they lack.

A vector is made where there is none and its source has text; one that was given is never touched.
Beside each vector made here stands its origin, by which a later look tells whether it is stale.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.embedding.embedder import Task
from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.errors import ConfigError, EmbeddingError
from omnigraph_core.schema.arrow import origin_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.schema.catalog import Embedding, NodeType


class EmbedMode(StrEnum):
    """What a write does about vectors it lacks.

    `now` makes them or fails; `defer` leaves them pending once the provider fails; `off` does not
    ask for any.
    """

    NOW = "now"
    DEFER = "defer"
    OFF = "off"


class VectorFiller:
    """Fills the rows of one write; after a failure in `defer` mode it does not ask again."""

    def __init__(
        self,
        embedder: Embedder,
        mode: EmbedMode,
        on_done: Callable[[int], None] | None = None,
    ) -> None:
        self._embedder = embedder
        self._mode = mode
        self._on_done = on_done
        self.failure: EmbeddingError | ConfigError | None = None
        """Why vectors were left pending."""

    def fill(self, rows: pa.Table, node: NodeType) -> pa.Table:
        """The rows with every vector that can be made.

        Raises:
            EmbeddingError: the provider failed.
            ConfigError: it cannot be used as configured.
        """
        for vector, embedding in node.embeddings.items():
            lacking = lacks_vector(rows, vector, embedding)
            if self._mode is not EmbedMode.OFF and self.failure is None and any_true(lacking):
                rows = self._fill_column(rows, node, vector, lacking)
        return rows

    def _fill_column(
        self, rows: pa.Table, node: NodeType, vector: str, lacking: pa.Array
    ) -> pa.Table:
        embedding = node.embeddings[vector]
        texts = rows.column(embedding.source).filter(lacking).to_pylist()
        dimension = node.properties[vector].type.dimension
        assert dimension is not None  # a vector has one
        try:
            made = self._embedder.embed(
                texts,
                dimension=dimension,
                task=Task.DOCUMENT,
                model=embedding.model,
                on_done=self._on_done,
            )
        except (EmbeddingError, ConfigError) as failure:
            if self._mode is EmbedMode.NOW:
                raise
            self.failure = failure
            return rows
        model = self._embedder.model_for(embedding.model)
        origins = [fingerprint(model, text) for text in texts]
        return put_vectors(rows, vector, lacking, made, origins)


def fill_vectors(
    rows: pa.Table,
    node: NodeType,
    embedder: Embedder,
    *,
    mode: EmbedMode,
    on_done: Callable[[int], None] | None = None,
) -> pa.Table:
    """The rows with the vectors they lack, as far as the mode asks for them.

    Raises:
        EmbeddingError, ConfigError: in `now` mode, a vector cannot be made.
    """
    return VectorFiller(embedder, mode, on_done).fill(rows, node)


def lacks_vector(rows: pa.Table, vector: str, embedding: Embedding) -> pa.BooleanArray:
    """Which rows have a text and no vector made of it; a blank text has nothing to embed."""
    has_text = pc.not_equal(pc.utf8_trim_whitespace(rows.column(embedding.source)), "")
    lacking = pc.and_(pc.is_null(rows.column(vector)), pc.fill_null(has_text, fill_value=False))
    return lacking.combine_chunks()


def any_true(mask: pa.BooleanArray) -> bool:
    return bool(pc.any(mask).as_py())


def put_vectors(
    rows: pa.Table, vector: str, at: pa.BooleanArray, made: np.ndarray, origins: list[int]
) -> pa.Table:
    """The rows with these vectors and origins where the mask is true."""
    column = rows.column(vector).combine_chunks()
    chosen = at.to_numpy(zero_copy_only=False)
    values, present = _as_matrix(column)
    values[chosen] = made
    marks = pc.replace_with_mask(
        rows.column(origin_column(vector)).combine_chunks(), at, pa.array(origins, pa.int64())
    )
    return _with_vectors(rows, vector, _as_vectors(values, present | chosen, column.type), marks)


def clear_vectors(rows: pa.Table, vector: str, at: pa.BooleanArray) -> pa.Table:
    """The rows without vector and origin where the mask is true."""
    column = rows.column(vector).combine_chunks()
    values, present = _as_matrix(column)
    kept = present & ~at.to_numpy(zero_copy_only=False)
    marks = pc.if_else(at, pa.scalar(None, pa.int64()), rows.column(origin_column(vector)))
    return _with_vectors(rows, vector, _as_vectors(values, kept, column.type), marks)


def _as_matrix(column: pa.FixedSizeListArray) -> tuple[np.ndarray, np.ndarray]:
    """One row per vector, and which of them are there; the others are zeros."""
    present = pc.is_valid(column).to_numpy(zero_copy_only=False)
    values = np.zeros((len(column), column.type.list_size), dtype=np.float32)
    values[present] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, values.shape[1])
    return values, present


def _as_vectors(
    values: np.ndarray, present: np.ndarray, type: pa.FixedSizeListType
) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(values.reshape(-1)), type=type, mask=pa.array(~present)
    )


def _with_vectors(
    rows: pa.Table, vector: str, vectors: pa.Array, origins: pa.Array | pa.ChunkedArray
) -> pa.Table:
    origin = origin_column(vector)
    rows = rows.set_column(rows.schema.get_field_index(vector), vector, vectors)
    return rows.set_column(rows.schema.get_field_index(origin), origin, origins)
