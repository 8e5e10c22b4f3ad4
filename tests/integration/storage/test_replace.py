"""Rows are replaced and removed by address, and no index finds what is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.storage.fragments import write_append
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind
from omnigraph_core.storage.staged import stage_append, stage_delete_addresses, stage_replace
from tests.support.parts import (
    QUERY,
    SCHEMA,
    by_id,
    contents,
    nearest,
    part,
    parts,
    present,
    rows,
    shaped,
)
from tests.support.table_writes import stage_delete_keys

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

NOWHERE = pa.array([], pa.uint64())
VECTOR_KINDS = [kind for kind in SegmentKind if kind.is_vector]


def addresses_of(table: Table, ids: list[str]) -> pa.ChunkedArray:
    return find_rows(table, "id", pa.array(ids), [], has_addresses=True).column(ADDRESS)


def test_replacing_is_more_and_less_than_an_upsert(stocked: Table) -> None:
    appended = present(stage_replace(stocked, rows(parts([7])), NOWHERE))
    assert contents(appended) == by_id(parts([*range(6), 7]))
    emptied = addresses_of(stocked, ["3", "4", "5"])
    shorter = present(stage_replace(stocked, SCHEMA.empty_table(), emptied))
    assert contents(shorter) == by_id(parts(range(3)))
    assert [fragment.fragment_id for fragment in shorter.dataset.get_fragments()] == [0]
    written = write_append(shorter, rows(parts([8, 9])))
    both = present(stage_replace(shorter, written, addresses_of(shorter, ["1"])))
    assert contents(both) == by_id(parts([0, 2, 8, 9]))
    again = present(stage_replace(both, rows(parts([1, 2])), addresses_of(both, ["2", "9"])))
    assert contents(again) == by_id(parts([0, 1, 2, 8]))


def test_an_address_may_be_given_twice(stocked: Table) -> None:
    twice = pa.chunked_array([addresses_of(stocked, ["1"]).chunk(0)] * 2)
    assert contents(present(stage_delete_addresses(stocked, twice))) == by_id(
        parts([0, 2, 3, 4, 5])
    )


def test_addresses_where_no_row_is(stocked: Table) -> None:
    """Those of another version, mostly: what they would hit is not what was looked at."""
    table = present(stage_delete_keys(stocked, pa.array(["1"])))
    for stale in (addresses_of(stocked, ["1", "2"]), pa.array([7 << 32], pa.uint64())):
        with pytest.raises(InvariantBroken, match="has a row at every address that is deleted"):
            stage_delete_addresses(table, stale)
        with pytest.raises(InvariantBroken, match="has a row at every address that is deleted"):
            stage_replace(table, rows(parts([1])), stale)
    with pytest.raises(StorageError, match="out of range"):
        stage_delete_addresses(table, pa.array([99], pa.uint64()))


def test_no_index_finds_what_was_replaced(stocked: Table) -> None:
    table = stocked
    for request in (
        IndexRequest("id", SegmentKind.BTREE, "id_btree"),
        IndexRequest("name", SegmentKind.INVERTED, "name_text"),
    ):
        table = present(stage_index(table, request))
    items = [part(1, name="nut"), part("x", name="washer number1")]
    table = present(stage_replace(table, rows(items), addresses_of(table, ["1", "5"])))
    ids = find_rows(table, "id", pa.array(["1", "5", "x"]), ["id", "name"])
    assert ids.to_pylist() == [{"id": item["id"], "name": item["name"]} for item in items]
    for word, expected in (("bolt", {"0", "2", "3", "4"}), ("number1", {"x"}), ("number5", set())):
        query = {"columns": ["name"], "query": word}
        hits = table.dataset.to_table(columns=["id", "_score"], full_text_query=query)
        assert set(hits.column("id").to_pylist()) == expected


@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_no_vector_index_finds_what_was_replaced(empty: Table, kind: SegmentKind) -> None:
    request = IndexRequest("shape", kind, "shape_vectors", Metric.L2)
    table = present(stage_append(empty, rows([*shaped(300), part("near", shape=QUERY)])))
    table = present(stage_index(table, request))
    assert nearest(table, 1, refine_factor=20, nprobes=100) == ["near"]
    items = [part("near", shape=[-9.0] * 4), part("nearer", shape=QUERY)]
    table = present(stage_replace(table, rows(items), addresses_of(table, ["near", "1-7"])))
    found = nearest(table, 299, refine_factor=20, nprobes=100)
    assert found[0] == "nearer"
    assert not {"near", "1-7"} & set(found[:250])
    assert len(set(found)) == len(found)
