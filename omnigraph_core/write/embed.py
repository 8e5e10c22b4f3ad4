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
from omnigraph_core.storage.lookup import find_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.schema.catalog import Embedding, NodeType
    from omnigraph_core.storage.dataset import Table


class EmbedMode(StrEnum):
    """What a write does about vectors it lacks.

    `now` makes them or fails; `defer` leaves them pending once the provider fails; `off` does not
    ask for any.
    """

    NOW = "now"
    DEFER = "defer"
    OFF = "off"


class VectorFiller:
    """Fills the rows of one write; after a failure in `defer` mode it does not ask again.

    With `open_table` it takes vectors over from committed rows where the text has stayed the same.
    """

    def __init__(
        self,
        embedder: Embedder,
        mode: EmbedMode,
        on_done: Callable[[int], None] | None = None,
        open_table: Callable[[str], Table] | None = None,
    ) -> None:
        self._embedder = embedder
        self._mode = mode
        self._on_done = on_done
        self._open_table = open_table
        self.failure: EmbeddingError | ConfigError | None = None
        """Why vectors were left pending."""

    def take_over(self, rows: pa.Table, node: NodeType) -> pa.Table:
        """The rows with the vectors that were made before of the same texts for the same ids."""
        if self._open_table is None:
            return rows
        table = self._open_table(node.table_key)
        for vector, embedding in node.embeddings.items() if table.count_rows() else ():
            lacking = lacks_vector(rows, vector, embedding)
            if any_true(lacking):
                origins = self._origins(rows, embedding)
                rows = take_over_vectors(rows, vector, lacking, origins, table)
        return rows

    def _origins(self, rows: pa.Table, embedding: Embedding) -> list[int | None]:
        """What the origin of each row's vector would be, made now."""
        try:
            model = self._embedder.model_for(embedding.model)
        except ConfigError:
            return [None] * rows.num_rows  # nothing can be made now, so nothing is known to be same
        texts = rows.column(embedding.source).to_pylist()
        return [None if text is None else fingerprint(model, text) for text in texts]

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


def lacks_vector(rows: pa.Table, vector: str, embedding: Embedding) -> pa.BooleanArray:
    """Which rows have a text and no vector made of it; a blank text has nothing to embed."""
    has_text = pc.not_equal(pc.utf8_trim_whitespace(rows.column(embedding.source)), "")
    lacking = pc.and_(pc.is_null(rows.column(vector)), pc.fill_null(has_text, fill_value=False))
    return lacking.combine_chunks()


def take_over_vectors(
    rows: pa.Table,
    vector: str,
    lacking: pa.BooleanArray,
    origins: list[int | None],
    table: Table,
) -> pa.Table:
    """The rows with committed vectors of the same id and origin, where they lack one."""
    origin = origin_column(vector)
    ids = rows.column("id").combine_chunks()
    found = find_rows(table, "id", ids.filter(lacking), ["id", vector, origin]).combine_chunks()
    found = found.filter(pc.is_valid(found.column(origin)))
    if not found.num_rows:
        return rows
    place = pc.index_in(ids, value_set=found.column("id").combine_chunks())
    is_same = pc.equal(found.column(origin).take(place), pa.array(origins, pa.int64()))
    at = pc.and_(pc.fill_null(is_same, fill_value=False), lacking).combine_chunks()
    if not any_true(at):
        return rows
    known = found.column(vector).take(place.filter(at)).combine_chunks()
    made = known.flatten().to_numpy(zero_copy_only=False).reshape(len(known), -1)
    marks = [mark for mark, chosen in zip(origins, at.to_pylist(), strict=True) if chosen]
    return put_vectors(rows, vector, at, made, marks)


def any_true(mask: pa.BooleanArray) -> bool:
    return bool(pc.any(mask).as_py())


def put_vectors(
    rows: pa.Table,
    vector: str,
    at: pa.BooleanArray,
    made: np.ndarray,
    origins: Sequence[int | None],
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
