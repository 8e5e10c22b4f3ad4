"""Tables of vectors: around centres or anywhere, with and without an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import new_table, present

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

BY_SHAPE = IndexRequest("shape", SegmentKind.IVF_FLAT, "shape_vectors", Metric.COSINE)


def clustered(count: int, width: int, seed: int = 1) -> np.ndarray:
    """Vectors around a hundred centres."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((100, width))
    spread = 0.5 * chance.standard_normal((count, width))
    return (centres[chance.integers(0, 100, count)] + spread).astype(np.float32)


def anywhere(count: int, width: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, width)).astype(np.float32)


def vector_rows(vectors: np.ndarray | Sequence[Sequence[float] | None], width: int) -> pa.Table:
    """Rows whose ids are their places, filled up to sort like numbers."""
    kind = pa.list_(pa.field("item", pa.float32()), width)
    if isinstance(vectors, np.ndarray):
        shapes = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), type=kind)
    else:
        shapes = pa.array(vectors, kind)
    ids = pa.array([f"{place:07}" for place in range(len(vectors))], pa.utf8())
    fields = [pa.field("id", pa.utf8(), nullable=False), pa.field("shape", kind)]
    return pa.Table.from_arrays([ids, shapes], schema=pa.schema(fields))


def vector_table(root: Path, *parts: pa.Table, indexed: int = 0) -> Table:
    """The parts as fragments of one table, the first ones of them indexed."""
    table = new_table(root, parts[0].schema)
    for place, part in enumerate(parts, 1):
        table = present(stage_append(table, part))
        if place == indexed:
            table = present(stage_index(table, BY_SHAPE))
    return table


def cosine_distances(vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """As a textbook has them; NaN where there is no direction."""
    values, sought = vectors.astype(np.float64), query.astype(np.float64)
    with np.errstate(invalid="ignore"):
        cosines = (values * sought).sum(axis=1) / (
            np.sqrt((values**2).sum(axis=1)) * np.sqrt((sought**2).sum())
        )
    distances: np.ndarray = 1 - cosines
    return distances


def queries_for(vectors: np.ndarray, count: int) -> np.ndarray:
    """Vectors to look for: some close to stored ones, some from anywhere."""
    chance = np.random.default_rng(9)
    near = vectors[chance.integers(0, len(vectors), count)]
    near = near + 0.1 * chance.standard_normal(near.shape)
    anything = chance.standard_normal((count, vectors.shape[1]))
    return np.concatenate([near, anything]).astype(np.float32)
