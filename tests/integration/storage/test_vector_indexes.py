"""Vector indexes of every kind and metric, down to tables nothing can be learnt from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.segments import (
    UNINDEXABLE,
    IndexRequest,
    Metric,
    SegmentKind,
    build_segment,
)
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import nearest, part, parts, present, rows, shaped
from tests.support.table_writes import rename_column, stage_upsert

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

VECTOR_KINDS = [kind for kind in SegmentKind if kind.is_vector]


def shape_index(kind: SegmentKind, metric: Metric = Metric.L2) -> IndexRequest:
    return IndexRequest("shape", kind, "shape_vectors", metric)


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize("metric", Metric)
def test_vectors_are_found_as_without_index(
    empty: Table, kind: SegmentKind, metric: Metric
) -> None:
    request = shape_index(kind, metric)
    table = present(stage_append(empty, rows(shaped(300))))
    table = present(stage_index(table, request))
    table = present(stage_append(table, rows([*shaped(20, seed=2), part("none", shape=None)])))
    table = present(stage_upsert(table, rows(shaped(30, seed=1))))
    behind = nearest(table, 10, metric, refine_factor=20, nprobes=100)
    table = present(stage_index(table, request))
    assert index_coverage(table)[0].unindexed_fragments == ()
    assert index_coverage(table)[0].metric is metric
    complete = nearest(table, 10, metric, refine_factor=20, nprobes=100)
    assert complete == behind == nearest(table, 10, metric, use_index=False)


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("count", [1, 2, 255])
def test_small_tables_get_an_exact_index(
    empty: Table, kind: SegmentKind, metric: Metric, count: int
) -> None:
    table = present(stage_append(empty, rows(shaped(count))))
    table = present(stage_index(table, shape_index(kind, metric)))
    assert index_coverage(table)[0].unindexed_rows == 0
    found = nearest(table, 5, metric, refine_factor=50)
    assert found == nearest(table, 5, metric, use_index=False)
    if kind is SegmentKind.IVF_PQ:
        assert index_coverage(table)[0].kind is SegmentKind.IVF_FLAT


@pytest.mark.parametrize("kind", VECTOR_KINDS)
@pytest.mark.parametrize("metric", Metric)
def test_vectors_nothing_can_be_learnt_from_stay_pending(
    empty: Table, kind: SegmentKind, metric: Metric
) -> None:
    request = shape_index(kind, metric)
    table = present(stage_append(empty, rows(parts(range(300), shape=None))))
    assert stage_index(table, request) is None
    assert build_segment(table, request, [0]) is None
    table = present(stage_append(empty, rows(parts(range(3), shape=[0.0] * 4))))
    staged = stage_index(table, request)
    assert (staged is None) == (metric is Metric.COSINE)
    table = present(stage_append(empty, rows(parts(range(3), shape=[math.nan] * 4))))
    assert stage_index(table, request) is None
    mixed = [*parts(range(300), shape=None), *shaped(2), part("zero", shape=[0.0] * 4)]
    table = present(stage_append(empty, rows(mixed)))
    table = present(stage_index(table, request))
    assert set(nearest(table, 2, metric)) <= {"1-0", "1-1", "zero"}


def test_a_small_index_gives_way_to_the_requested_kind(empty: Table) -> None:
    request = shape_index(SegmentKind.IVF_PQ)
    table = present(stage_index(present(stage_append(empty, rows(shaped(10)))), request))
    table = present(stage_append(table, rows(shaped(400, seed=2))))
    table = present(stage_index(present(compact(table)), request))
    assert index_coverage(table)[0].kind is SegmentKind.IVF_PQ


@pytest.mark.parametrize("name", sorted(UNINDEXABLE - {"_rowid", "_rowaddr", "_distance"}))
def test_a_vector_under_a_name_of_lance_itself_stays_pending(empty: Table, name: str) -> None:
    table = rename_column(present(stage_append(empty, rows(shaped(300)))), "shape", name)
    request = IndexRequest(name, SegmentKind.IVF_FLAT, "vectors", Metric.COSINE)
    assert build_segment(table, request, [0]) is None
    assert stage_index(table, request) is None
