"""What a mutation has done so far, as its next statement sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.write.batches import FRESH, LINE, SOURCE
from omnigraph_core.write.pending import (
    MutationStaging,
    PendingRows,
    committed_rows,
    pending_schema,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

CATALOG = compile_schema(
    "node Part { sku: String @key stock: I64? } node Bin { code: String @key }"
    " edge Holds: Bin -> Part"
)
PART = CATALOG.nodes["Part"]


def rows(*items: tuple[str | None, int], statement: int = 1) -> pa.Table:
    ids = [id for id, _ in items]
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.utf8()),
        "sku": pa.array(ids, pa.utf8()),
        "stock": pa.array([stock for _, stock in items], pa.int64()),
        SOURCE: pa.array([0] * len(items), pa.int32()),
        LINE: pa.array([statement] * len(items), pa.int64()),
        FRESH: pa.array([False] * len(items)),
    }
    return pa.table(columns)


def found(ids: Sequence[str], addresses: Sequence[int]) -> pa.Table:
    return pa.table({"id": list(ids), ADDRESS: pa.array(addresses, pa.uint64())})


def held(pending: PendingRows) -> list[tuple[str | None, int, int]]:
    columns = (pending.rows.column(name).to_pylist() for name in ("id", "stock", LINE))
    return list(zip(*columns, strict=True))


def test_the_newest_row_of_an_id_is_held() -> None:
    pending = PendingRows(PART)
    pending.add(rows(("a", 1), ("b", 1)))
    pending.add(rows(("a", 2), statement=2))
    pending.add(rows(("c", 3), ("a", 3), statement=3))

    assert held(pending) == [("b", 1, 1), ("c", 3, 3), ("a", 3, 3)]
    pending.add(rows(("b", 4), statement=4))
    assert held(pending) == [("c", 3, 3), ("a", 3, 3), ("b", 4, 4)]


def test_rows_without_an_id_are_all_held() -> None:
    pending = PendingRows(PART)
    pending.add(rows((None, 1), ("a", 1), (None, 2)))
    pending.add(rows(("a", 2)))

    assert sorted(held(pending), key=str) == [("a", 2, 1), (None, 1, 1), (None, 2, 1)]


def test_committed_rows_that_were_replaced_are_out_of_sight() -> None:
    pending = PendingRows(PART)
    committed = rows(("a", 1), ("b", 2))

    assert pending.shadows(committed).num_rows == 2
    pending.add(rows(("a", 9)))
    assert pending.shadows(committed).column("id").to_pylist() == ["b"]


def test_committed_rows_keep_their_address() -> None:
    stored = pa.table(
        {"id": ["a"], "sku": ["a"], "stock": [1], ADDRESS: pa.array([7], pa.uint64())}
    )
    pending = PendingRows(PART)
    pending.add(rows(("b", 1)))
    pending.add(committed_rows(PART, stored))

    assert pending.rows.schema.equals(pending_schema(PART))
    assert pending.rows.column(ADDRESS).to_pylist() == [None, 7]
    assert pending.rows.column(FRESH).to_pylist() == [False, False]


def test_each_row_is_deleted_once() -> None:
    staging = MutationStaging()
    staging.delete(PART, found(["b", "a"], [2, 1]))
    staging.delete(PART, found(["a", "c"], [1, 3]))
    staging.delete(CATALOG.nodes["Bin"], found([], []))

    ((type, gone),) = staging.deletions
    assert type is PART
    assert sorted(gone.column("id").to_pylist()) == ["a", "b", "c"]


def test_rows_are_kept_by_table() -> None:
    staging = MutationStaging()
    staging.rows_of(PART).add(rows(("a", 1)))

    assert staging.rows_of(PART).rows.num_rows == 1
    assert [pending.type for pending in staging.pending] == [PART]
