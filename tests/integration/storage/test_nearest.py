"""Vectors near a given one, through an index: nearly all of the nearest are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import QueryCancelled
from omnigraph_core.storage import nearest
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.lookup import ADDRESS, find_where
from omnigraph_core.storage.nearest import iter_vectors, nearest_rows
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind
from tests.support.parts import present
from tests.support.table_writes import stage_delete_where
from tests.support.vector_tables import (
    anywhere,
    clustered,
    cosine_distances,
    queries_for,
    vector_rows,
    vector_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

WIDTH = 16
COUNT = 300_000
"""Enough for an index that is not looked at as a whole at once."""


def go_on() -> None:
    """Nobody stops the search."""


def found_in(table: Table, query: np.ndarray, count: int) -> tuple[list[int], list[float]]:
    found = nearest_rows(table, "shape", query, count, check=go_on)
    assert found is not None
    return found[0].tolist(), found[1].tolist()


def addresses(table: Table) -> np.ndarray:
    found: np.ndarray = find_where(table, None, [], has_addresses=True).column(ADDRESS).to_numpy()
    return found


def recall(table: Table, vectors: np.ndarray) -> float:
    """The share of the ten nearest rows that is found, over several searches."""
    places, shares = addresses(table), []
    for query in queries_for(vectors, 10):
        nearest_ten = np.argpartition(cosine_distances(vectors, query), 10)[:10]
        found, _ = found_in(table, query, 10)
        shares.append(len(set(places[nearest_ten].tolist()) & set(found)) / 10)
    return float(np.mean(shares))


@pytest.mark.parametrize("make", [clustered, anywhere])
def test_an_index_finds_nearly_all_of_the_nearest(
    tmp_path: Path, make: Callable[[int, int], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = make(COUNT, WIDTH)
    table = vector_table(tmp_path, vector_rows(vectors, WIDTH), indexed=1)
    looks: list[int] = []
    search = nearest._search

    def seen(table: Table, query: dict[str, object], probes: int) -> tuple[np.ndarray, np.ndarray]:
        looks.append(probes)
        return search(table, query, probes)

    monkeypatch.setattr(nearest, "_search", seen)
    assert recall(table, vectors) >= 0.98
    # A part of the index is enough where vectors lie together.
    looks.clear()
    found_in(table, vectors[5], 10)
    assert len(looks) > 1
    if make is clustered:
        assert nearest._ALL_PROBES not in looks


def test_rows_that_are_not_indexed_yet_are_found_as_well(tmp_path: Path) -> None:
    vectors = clustered(20_000, WIDTH)
    parts = vector_rows(vectors[:18_000], WIDTH), vector_rows(vectors[18_000:], WIDTH)
    table = vector_table(tmp_path, *parts, indexed=1)

    assert index_coverage(table)[0].unindexed_rows == 2_000
    assert recall(table, vectors) >= 0.98


def test_deleted_rows_are_not_found(tmp_path: Path) -> None:
    vectors = anywhere(500, 4)
    table = vector_table(tmp_path, vector_rows(vectors, 4), indexed=1)
    table = present(stage_delete_where(table, "`id` < '0000400'"))

    found, distances = found_in(table, vectors[0], 200)

    assert sorted(found) == addresses(table).tolist()
    assert distances == pytest.approx(sorted(cosine_distances(vectors[400:], vectors[0])), abs=1e-5)


def test_fewer_vectors_than_asked_for(tmp_path: Path) -> None:
    shapes = [[1.0, 0.0], None, [0.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]
    table = vector_table(tmp_path, vector_rows(shapes, 2), indexed=1)

    found, distances = found_in(table, np.array([1, 0.1], np.float32), 50)

    assert [place & 0xFFFF for place in found if place != 2] == [0, 3, 4]
    assert distances == sorted(distances)


def test_no_index_of_that_metric(tmp_path: Path) -> None:
    table = vector_table(tmp_path, vector_rows(anywhere(300, 4), 4))
    query = np.ones(4, np.float32)
    assert nearest_rows(table, "shape", query, 5, check=go_on) is None

    request = IndexRequest("shape", SegmentKind.IVF_FLAT, "shape_vectors", Metric.L2)
    assert (
        nearest_rows(present(stage_index(table, request)), "shape", query, 5, check=go_on) is None
    )


def test_an_index_of_shortened_vectors(tmp_path: Path) -> None:
    vectors = clustered(3_000, 16)
    table = vector_table(tmp_path, vector_rows(vectors, 16))
    request = IndexRequest("shape", SegmentKind.IVF_PQ, "shape_vectors", Metric.COSINE)
    table = present(stage_index(table, request))

    assert index_coverage(table)[0].kind is SegmentKind.IVF_PQ
    assert recall(table, vectors) >= 0.98


def test_a_search_can_be_stopped(tmp_path: Path) -> None:
    table = vector_table(tmp_path, vector_rows(anywhere(300, 4), 4), indexed=1)

    def stop() -> None:
        raise QueryCancelled

    with pytest.raises(QueryCancelled):
        nearest_rows(table, "shape", np.ones(4, np.float32), 5, check=stop)


def test_all_vectors_one_after_another(tmp_path: Path) -> None:
    shapes = [[float(place), 1.0] if place % 7 else None for place in range(100)]
    rows = vector_rows(shapes, 2)
    table = vector_table(tmp_path, rows.slice(0, 60), rows.slice(60))
    table = present(stage_delete_where(table, "`id` = '0000003'"))
    table = open_table(table.store, table.location, table.physical_version)

    batches = list(iter_vectors(table, "shape", batch_rows=16))

    assert max(len(batch) for batch in batches) <= 16
    assert pa.chunked_array(batches).to_pylist() == [*shapes[:3], *shapes[4:]]
