"""Rows that two versions share: by metadata, and by lists of what was deleted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.storage import version_rows
from omnigraph_core.storage.dataset import create_table, open_table
from omnigraph_core.storage.fragments import write_append
from omnigraph_core.storage.lookup import ADDRESS, find_where
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from omnigraph_core.storage.version_rows import NO_ROW, OwnRows, match_rows, unshared
from tests.support.parts import SCHEMA, parts, present, rows
from tests.support.table_writes import (
    add_filled_column,
    add_null_column,
    stage_delete_keys,
    stage_upsert,
)

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

Shown = tuple[tuple[int, ...], list[tuple[int, int]], int]
NOTHING: Shown = ((), [], 0)


def shown(own: OwnRows) -> Shown:
    """Whole fragments, single rows as fragment and offset, and how many there are."""
    assert own.addresses.dtype == np.uint64
    single = [(place >> 32, place & 0xFFFF_FFFF) for place in own.addresses.tolist()]
    return own.fragments, single, own.count


def both(a: Table, b: Table) -> tuple[Shown, Shown]:
    mine, other = unshared(a, b)
    assert tuple(map(shown, unshared(b, a))) == (shown(other), shown(mine))
    return shown(mine), shown(other)


def keys(*numbers: int) -> pa.Array:
    return pa.array([str(number) for number in numbers])


def test_a_version_with_itself(stocked: Table) -> None:
    assert both(stocked, stocked) == (NOTHING, NOTHING)


def test_rows_that_were_added(stocked: Table) -> None:
    later = present(stage_append(stocked, rows(parts([10, 11]))))
    assert both(stocked, later) == (NOTHING, ((2,), [], 2))


def test_rows_that_were_deleted(stocked: Table) -> None:
    less = present(stage_delete_keys(stocked, keys(1, 4)))
    assert both(stocked, less) == (((), [(0, 1), (1, 1)], 2), NOTHING)
    other = present(stage_delete_keys(stocked, keys(1, 5)))
    assert both(less, other) == (((), [(1, 2)], 1), ((), [(1, 1)], 1))
    same = present(stage_delete_keys(stocked, keys(4, 1)))
    assert both(less, same) == (NOTHING, NOTHING), "by lists of other names"


def test_rows_that_were_replaced(stocked: Table) -> None:
    later = present(stage_upsert(stocked, rows(parts([0, 9], stock=5))))
    assert both(stocked, later) == (((), [(0, 0)], 1), ((2,), [], 2))


def test_all_rows_of_a_fragment(stocked: Table) -> None:
    one = stage_delete_keys(stocked, keys(3))
    less = present(stage_delete_keys(present(one), keys(4, 5)))
    assert both(stocked, less) == (((1,), [], 3), NOTHING)
    assert both(present(one), less) == (((1,), [], 2), NOTHING)


def test_one_id_for_different_files(stocked: Table) -> None:
    """Two lines number their fragments on by themselves."""
    ours = present(stage_append(stocked, rows(parts([10, 11]))))
    theirs = present(stage_append(stocked, rows(parts([20]))))
    assert fragment_states(ours)[-1].id == fragment_states(theirs)[-1].id == 2
    assert both(ours, theirs) == (((2,), [], 2), ((2,), [], 1))


def test_one_file_under_different_ids(stocked: Table) -> None:
    written = write_append(stocked, rows(parts([20, 21])))
    theirs = present(stage_append(stocked, written))
    ours = present(stage_append(stocked, rows(parts([10]))))
    ours = present(stage_append(ours, written))
    assert both(ours, theirs) == (((2,), [], 1), NOTHING)
    less = present(stage_delete_keys(ours, keys(21)))
    assert both(less, theirs) == (((2,), [], 1), ((), [(2, 1)], 1))
    gone = present(stage_delete_keys(theirs, keys(20)))
    assert both(less, gone) == (((2, 3), [], 2), ((2,), [], 1)), "each has what the other deleted"
    match = match_rows(theirs, less)
    places = np.array([(2 << 32), (2 << 32) + 1, 1, 99 << 32], np.uint64)
    assert match.to_after(places).tolist() == [3 << 32, int(NO_ROW), 1, int(NO_ROW)]


def test_everything_was_replaced(stocked: Table) -> None:
    later = present(stage_overwrite(stocked, stocked.read()))
    assert both(stocked, later) == (((0, 1), [], 6), ((2,), [], 6))


def test_different_tables_share_nothing(stocked: Table) -> None:
    other = create_table(stocked.store, "nodes/others", SCHEMA)
    other = present(stage_append(other, stocked.read()))
    assert both(stocked, other) == (((0, 1), [], 6), ((0,), [], 6))


def test_other_columns(stocked: Table) -> None:
    """Rows stay, but whoever asks for shared rows gets those with all columns shared."""
    empty = add_null_column(stocked, pa.field("note", pa.utf8()))
    assert both(stocked, empty) == (NOTHING, NOTHING)
    filled = add_filled_column(stocked, pa.field("grade", pa.int64()), pa.scalar(5))
    filled = present(stage_delete_keys(filled, keys(3)))
    assert both(stocked, filled) == (((0, 1), [], 6), ((0, 1), [], 5))
    match = match_rows(stocked, filled)
    assert shown(match.before_own) == ((), [(1, 0)], 1)
    assert shown(match.after_own) == NOTHING
    assert match.stored_otherwise("stock", "stock") == ()
    assert match.stored_otherwise(None, "grade") == match.parts
    assert match.stored_otherwise("name", "stock") == match.parts
    was, now = match.pairs(match.parts[1])
    assert was.tolist() == now.tolist() == [(1 << 32) + 1, (1 << 32) + 2]


def test_no_row_is_read(stocked: Table) -> None:
    chance = random.Random(1)
    noise = [chance.randbytes(500).hex() for _ in range(4_000)]
    schema = pa.schema([("id", pa.utf8()), ("body", pa.utf8())])
    ids = [str(number) for number in range(len(noise))]
    table = create_table(stocked.store, "nodes/bodies", schema)
    table = present(stage_append(table, pa.table([ids, noise], schema)))
    less = present(stage_delete_keys(table, pa.array(ids[::7])))
    store = open_store(stocked.store.root.text)
    fresh = [open_table(store, "nodes/bodies", item.physical_version) for item in (table, less)]
    fresh[0].dataset.io_stats_incremental()
    own, none = unshared(*fresh)
    assert (own.count, none.count) == (len(ids[::7]), 0)
    read = fresh[0].dataset.io_stats_incremental()
    assert (read.read_iops, read.read_bytes < 10_000) == (1, True), "what was deleted"
    assert unshared(fresh[0], fresh[0])[0].count == 0
    assert fresh[0].dataset.io_stats_incremental().read_iops == 0


def test_whether_rows_are_among_those(stocked: Table) -> None:
    less = present(stage_delete_keys(stocked, keys(1, 3, 4, 5)))
    own, _ = unshared(stocked, less)
    places = find_where(stocked, None, [], has_addresses=True).column(ADDRESS).to_numpy()
    assert own.has(places).tolist() == [False, True, False, True, True, True]
    assert version_rows.OwnRows((), places[:0], 0).has(places).tolist() == [False] * 6
