"""Indexes catch up segment by segment and never change a result."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from lance.dataset import LanceOperation

from omnigraph_core import failpoints
from omnigraph_core.errors import InvariantBroken, PreconditionFailed, StorageError
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import EMPTY_VERSION, open_table
from omnigraph_core.storage.detached import stage
from omnigraph_core.storage.indexes import (
    MAX_SEGMENTS,
    IndexPlan,
    index_coverage,
    plan_index,
    stage_drop_index,
    stage_index,
    stage_segments,
)
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.segments import (
    IndexRequest,
    Metric,
    SegmentKind,
    build_segment,
    load_segment,
)
from omnigraph_core.storage.staged import stage_append, stage_overwrite, stage_replace
from tests.support.parts import SCHEMA, nearest, part, parts, present, rows, shaped
from tests.support.table_writes import (
    add_null_column,
    stage_delete_keys,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

BY_ID = IndexRequest("id", SegmentKind.BTREE, "id_btree")
VALUE_REQUESTS = {
    request.name: request
    for request in (
        BY_ID,
        IndexRequest("stock", SegmentKind.BTREE, "stock_btree"),
        IndexRequest("stock", SegmentKind.BITMAP, "stock_bitmap"),
        IndexRequest("tags", SegmentKind.LABEL_LIST, "tags_labels"),
        IndexRequest("name", SegmentKind.NGRAM, "name_ngram"),
        IndexRequest("name", SegmentKind.INVERTED, "name_text"),
    )
}
FILTERS = {
    "id_btree": "`id` IN ('1', '7', '30')",
    "stock_btree": "`stock` BETWEEN 2 AND 7",
    "stock_bitmap": "`stock` = 3",
    "tags_labels": "array_has(`tags`, 'm2')",
    "name_ngram": "contains(`name`, 'umber1')",
}
VECTOR_KINDS = [kind for kind in SegmentKind if kind.is_vector]


def shape_index(kind: SegmentKind, metric: Metric = Metric.L2) -> IndexRequest:
    return IndexRequest("shape", kind, "shape_vectors", metric)


def search(table: Table, text: str, *, phrase: bool = False) -> set[str]:
    query = f'"{text}"' if phrase else text
    hits = table.dataset.to_table(
        columns=["id", "_score"], full_text_query={"columns": ["name"], "query": query}
    )
    return set(hits.column("id").to_pylist())


@pytest.mark.parametrize("name", VALUE_REQUESTS)
def test_an_index_follows_a_changing_table(stocked: Table, name: str) -> None:
    """After every step the index is behind, complete, and compared with the rows themselves."""
    request = VALUE_REQUESTS[name]
    steps = (
        lambda table: table,
        lambda table: stage_append(table, rows(parts([7, 8, 30]))),
        lambda table: stage_upsert(table, rows(parts([1, 3, 9], name="nut number11", stock=3))),
        lambda table: stage_delete_keys(table, pa.array(["7", "0"])),
        lambda table: stage_append(table, rows(parts([0, 11]))),
        lambda table: replaced(table, parts([2, 11, 12], name="nut number7", stock=5)),
        lambda table: compact(table),
        lambda table: stage_upsert(table, rows(parts([30], stock=3, tags=["m2"]))),
        lambda table: stage_append(table, rows(parts([40], name=None, stock=None, tags=None))),
    )
    table = stocked
    for step in steps:
        table = present(step(table))
        check_value_index(table, name)
        table = stage_index(table, request) or table
        check_value_index(table, name)
        coverage = index_coverage(table)[0]
        assert coverage.unindexed_fragments == ()
        assert 1 <= coverage.segment_count <= MAX_SEGMENTS
        assert stage_index(table, request) is None
    assert table.dataset.latest_version == EMPTY_VERSION


def replaced(table: Table, items: list[dict[str, Any]]) -> Table | None:
    """Rows put in the place of those with the same ids."""
    ids = pa.array([item["id"] for item in items])
    there = find_rows(table, "id", ids, [], has_addresses=True).column(ADDRESS)
    return stage_replace(table, rows(items), there)


def check_value_index(table: Table, name: str) -> None:
    if name == "name_text":
        names = {row["id"]: row["name"] or "" for row in table.read(["id", "name"]).to_pylist()}
        for word in ("bolt", "nut", "number11", "missing"):
            expected = {key for key, text in names.items() if word in text.split()}
            assert not table.dataset.describe_indices() or search(table, word) == expected
        return
    scan = table.dataset.scanner(["id"], filter=FILTERS[name], use_scalar_index=False).to_table()
    found = table.read(["id"], where=FILTERS[name]).column("id").to_pylist()
    assert sorted(found) == sorted(scan.column("id").to_pylist())


def test_what_a_filter_uses_is_the_index(stocked: Table) -> None:
    for name, condition in FILTERS.items():
        table = present(stage_index(stocked, VALUE_REQUESTS[name]))
        plan = table.dataset.scanner(filter=condition).explain_plan()
        assert name in plan


def test_text_is_cut_into_words_as_documented(empty: Table) -> None:
    long_word = "x" * 60
    names = ["The Köln", "running shoes", f"a {long_word}", "Shoes, running!", "über-groß"]
    table = present(stage_append(empty, rows([part(n, name=name) for n, name in enumerate(names)])))
    table = present(stage_index(table, VALUE_REQUESTS["name_text"]))
    assert search(table, "the") == set()
    assert search(table, "koln") == search(table, "KÖLN") == {"0"}
    assert search(table, "run") == search(table, "running") == {"1", "3"}
    assert search(table, "running shoes", phrase=True) == {"1"}
    assert search(table, "gross") == {"4"}
    assert search(table, long_word) == set()


def test_coverage_counts_fragments_and_rows(stocked: Table) -> None:
    assert index_coverage(stocked) == ()
    table = present(stage_index(stocked, BY_ID))
    table = present(stage_append(table, rows(parts([7, 8]))))
    table = present(stage_index(table, shape_index(SegmentKind.IVF_FLAT, Metric.COSINE)))
    table = present(stage_delete_keys(table, pa.array(["8", "0"])))
    by_key, by_shape = index_coverage(table)
    assert (by_key.name, by_key.columns, by_key.kind) == ("id_btree", ("id",), SegmentKind.BTREE)
    assert (by_key.metric, by_key.segment_count) == (None, 1)
    assert by_key.indexed_fragments == (0, 1)
    assert (by_key.unindexed_fragments, by_key.unindexed_rows) == ((2,), 1)
    assert (by_shape.kind, by_shape.metric) == (SegmentKind.IVF_FLAT, Metric.COSINE)
    assert by_shape.unindexed_rows == 0


def test_segments_are_replaced_when_too_many(empty: Table) -> None:
    table, counts = empty, []
    for number in range(8):
        table = present(stage_append(table, rows(parts([number * 2, number * 2 + 1]))))
        table = present(stage_index(table, BY_ID))
        counts.append(index_coverage(table)[0].segment_count)
    assert counts == [1, 2, 3, 4, 1, 2, 3, 4]
    for number in range(16):
        assert table.read(where=f"`id` = '{number}'").num_rows == 1


def test_only_pending_fragments_are_planned(stocked: Table) -> None:
    assert plan_index(stocked, BY_ID) == IndexPlan((0, 1), is_rebuild=False)
    assert plan_index(stocked, BY_ID, fragment_ids=[1, 9]) == IndexPlan((1,), is_rebuild=False)
    table = present(stage_index(stocked, BY_ID, fragment_ids=[1]))
    assert plan_index(table, BY_ID) == IndexPlan((0,), is_rebuild=False)
    assert plan_index(table, BY_ID, fragment_ids=[1]) is None
    assert stage_index(table, BY_ID, fragment_ids=[1]) is None
    table = present(stage_index(table, BY_ID))
    assert plan_index(table, BY_ID) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            IndexRequest("stock", SegmentKind.BTREE, "it"),
            IndexRequest("stock", SegmentKind.BITMAP, "it"),
        ),
        (
            IndexRequest("shape", SegmentKind.IVF_FLAT, "it", Metric.L2),
            IndexRequest("shape", SegmentKind.IVF_FLAT, "it", Metric.COSINE),
        ),
    ],
)
def test_another_kind_under_the_same_name_replaces(
    stocked: Table, first: IndexRequest, second: IndexRequest
) -> None:
    table = present(stage_index(stocked, first))
    assert plan_index(table, second) == IndexPlan((0, 1), is_rebuild=True)
    (coverage,) = index_coverage(present(stage_index(table, second)))
    assert (coverage.kind, coverage.metric) == (second.kind, second.metric)
    assert coverage.segment_count == 1


def test_a_name_stays_with_its_column(stocked: Table) -> None:
    table = present(stage_index(stocked, IndexRequest("stock", SegmentKind.BTREE, "it")))
    with pytest.raises(InvariantBroken, match="index `it` stays on its column stock"):
        stage_index(table, IndexRequest("id", SegmentKind.BTREE, "it"))


def test_a_table_without_rows_has_nothing_to_index(empty: Table, stocked: Table) -> None:
    for request in (*VALUE_REQUESTS.values(), *map(shape_index, VECTOR_KINDS)):
        assert stage_index(empty, request) is None
        table = present(stage_index(stocked, request))
        emptied = present(stage_overwrite(table, SCHEMA.empty_table()))
        assert stage_index(emptied, request) is None


def test_an_index_is_dropped_with_all_its_segments(stocked: Table) -> None:
    table = present(stage_index(stocked, BY_ID, fragment_ids=[0]))
    table = present(stage_index(table, BY_ID))
    table = present(stage_index(table, VALUE_REQUESTS["name_text"]))
    dropped = present(stage_drop_index(table, "id_btree"))
    assert [found.name for found in index_coverage(dropped)] == ["name_text"]
    assert stage_drop_index(dropped, "id_btree") is None
    assert len(index_coverage(table)) == 2


def test_a_request_has_a_metric_if_and_only_if_it_needs_one() -> None:
    with pytest.raises(InvariantBroken, match="metric"):
        IndexRequest("shape", SegmentKind.IVF_FLAT, "it")
    with pytest.raises(InvariantBroken, match="metric"):
        IndexRequest("id", SegmentKind.BTREE, "it", Metric.L2)


@pytest.mark.parametrize(
    "request_", [*VALUE_REQUESTS.values(), *map(shape_index, VECTOR_KINDS)], ids=lambda r: r.kind
)
def test_segments_are_built_elsewhere(empty: Table, request_: IndexRequest) -> None:
    table = empty
    for seed in range(3):
        table = present(stage_append(table, rows(shaped(5, seed=seed))))
    elsewhere = open_table(table.store, table.location, table.physical_version)
    segments = [build_segment(elsewhere, request_, [number]) for number in range(3)]
    contents = [content for content in segments if content is not None]
    assert len(contents) == 3
    assert stage_segments(table, []) is None
    moved = present(stage_delete_keys(table, pa.array(["0-0", "1-1"])))
    moved = present(stage_append(moved, rows(shaped(4, seed=9))))
    indexed = present(stage_segments(moved, contents))
    (coverage,) = index_coverage(indexed)
    assert (coverage.segment_count, coverage.indexed_fragments) == (3, (0, 1, 2))
    replaced = present(stage_segments(indexed, contents[:1], replaced_names=[request_.name]))
    assert index_coverage(replaced)[0].indexed_fragments == (0,)
    for version in (indexed, replaced):
        if request_.name in FILTERS:
            check_value_index(version, request_.name)
        elif request_.kind.is_vector:
            found = nearest(version, 5, refine_factor=50, nprobes=10)
            assert found == nearest(version, 5, use_index=False)
        else:
            assert search(version, "bolt") == set(version.read(["id"]).column("id").to_pylist())


def test_segments_of_changed_fragments_are_refused(stocked: Table) -> None:
    content = build_segment(stocked, BY_ID, [0, 1])
    assert content is not None
    replaced = present(stage_overwrite(stocked, rows(parts([1]))))
    with pytest.raises(PreconditionFailed, match="fragment 0 of `nodes/parts`"):
        stage_segments(replaced, [content])
    with pytest.raises(PreconditionFailed, match="column layout"):
        stage_segments(add_null_column(stocked, pa.field("note", pa.utf8())), [content])
    with pytest.raises(InvariantBroken, match="build_segment"):
        load_segment(pickle.dumps("something else"))


@pytest.mark.parametrize(
    "request_",
    [
        IndexRequest("nmae", SegmentKind.BITMAP, "it"),
        IndexRequest("tags", SegmentKind.BTREE, "it"),
        IndexRequest("stock", SegmentKind.INVERTED, "it"),
        IndexRequest("nmae", SegmentKind.INVERTED, "it"),
        IndexRequest("shape", SegmentKind.BTREE, "it"),
        IndexRequest("nmae", SegmentKind.IVF_FLAT, "it", Metric.L2),
        IndexRequest("name", SegmentKind.IVF_HNSW_SQ, "it", Metric.L2),
        IndexRequest("name", SegmentKind.IVF_PQ, "it", Metric.L2),
    ],
    ids=lambda request: f"{request.column} {request.kind}",
)
def test_columns_that_cannot_be_indexed_so(stocked: Table, request_: IndexRequest) -> None:
    with pytest.raises(InvariantBroken, match=f"`{request_.column}` of `nodes/parts` can have"):
        stage_index(stocked, request_)


@pytest.mark.parametrize("request_", [BY_ID, shape_index(SegmentKind.IVF_FLAT)])
def test_a_store_that_fails_is_reported(stocked: Table, request_: IndexRequest) -> None:
    (Path(stocked.uri) / "_indices").write_bytes(b"a file where a directory belongs")
    with pytest.raises(StorageError, match=f"building index `{request_.name}` failed"):
        stage_index(stocked, request_)


def test_an_index_of_a_kind_we_do_not_build_is_not_ignored(stocked: Table) -> None:
    built = stocked.dataset.create_index_uncommitted(
        "stock", "ZONEMAP", name="foreign", fragment_ids=[0, 1]
    )
    operation = LanceOperation.CreateIndex([built], [])
    foreign = stage(stocked, "indexing", lambda: operation)
    with pytest.raises(InvariantBroken, match="ZoneMap"):
        index_coverage(foreign)


def test_failing_at_any_point_leaves_the_table(stocked: Table) -> None:
    points = ("stage.before_files", "index.after_build", "stage.after_files", "stage.after_version")
    for point in points:
        with failpoints.arm(point, "error"), pytest.raises(StorageError, match=point):
            stage_index(stocked, BY_ID)
        assert index_coverage(stocked) == ()
    assert len(index_coverage(present(stage_index(stocked, BY_ID)))) == 1


def test_rows_come_and_go_under_every_index_at_once(stocked: Table) -> None:
    table = stocked
    for request in VALUE_REQUESTS.values():
        table = present(stage_index(table, request))
    table = present(stage_upsert(table, rows(parts([2, 20], name="nut", stock=3))))
    table = present(stage_delete_where(table, "`stock` = 5"))
    for name in VALUE_REQUESTS:
        check_value_index(table, name)
