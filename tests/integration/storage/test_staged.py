"""Every row operation makes one detached version, gives the rows it should, and leaves the rest."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core import failpoints
from omnigraph_core.errors import (
    PreconditionFailed,
    RecordError,
    StorageError,
)
from omnigraph_core.storage.dataset import EMPTY_VERSION, open_table
from omnigraph_core.storage.fragments import StagedFragments, combine, write_append
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import (
    remove_places,
    stage_append,
    stage_delete_addresses,
    stage_overwrite,
    stage_removed,
    stage_replace,
)
from tests.support.parts import (
    LARGE,
    LOCATION,
    SCHEMA,
    by_id,
    contents,
    files_below,
    new_table,
    part,
    parts,
    present,
    rows,
)
from tests.support.table_writes import (
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_keys,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.storage.dataset import Table

NOWHERE = pa.array([], pa.uint64())


def addresses_of(table: Table, ids: list[str]) -> pa.ChunkedArray:
    return find_rows(table, "id", pa.array(ids), [], has_addresses=True).column(ADDRESS)


def present_text(fragment: str | None) -> str:
    """A fragment that rows were removed from, and that others are left in."""
    assert fragment is not None
    return fragment


OPERATIONS: dict[str, Callable[[Table], Table | None]] = {
    "append": lambda table: stage_append(table, rows(parts([7, 8]))),
    "replace": lambda table: stage_replace(
        table, rows(parts([2, 9], stock=-1)), addresses_of(table, ["2", "4"])
    ),
    "delete addresses": lambda table: stage_delete_addresses(
        table, addresses_of(table, ["1", "4"])
    ),
    "removed elsewhere": lambda table: stage_removed(
        table,
        write_append(table, rows(parts([9], stock=-1))),
        [present_text(remove_places(table, 0, pa.array([1], pa.uint64())))],
        [1],
    ),
    "overwrite": lambda table: stage_overwrite(table, rows(parts([1, 2]))),
}
EXPECTED: dict[str, dict[str, Any]] = {
    "append": by_id(parts([*range(6), 7, 8])),
    "replace": {**by_id(parts([0, 1, 3, 5])), **by_id(parts([2, 9], stock=-1))},
    "delete addresses": by_id(parts([0, 2, 3, 5])),
    "removed elsewhere": by_id([*parts([0, 2]), part(9, stock=-1)]),
    "overwrite": by_id(parts([1, 2])),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_makes_one_detached_version(stocked: Table, name: str) -> None:
    before = contents(stocked)
    versions = Path(stocked.uri) / "_versions"
    manifests = set(versions.iterdir())
    after = present(OPERATIONS[name](stocked))
    assert contents(after) == EXPECTED[name]
    assert contents(stocked) == before
    assert {path.name for path in set(versions.iterdir()) - manifests} == {
        f"d{after.physical_version}.manifest"
    }
    assert after.dataset.latest_version == EMPTY_VERSION
    reopened = open_table(after.store, after.location, after.physical_version)
    assert contents(reopened) == EXPECTED[name]


@pytest.mark.parametrize("name", OPERATIONS)
def test_failing_at_any_point_leaves_the_table(stocked: Table, name: str) -> None:
    before = contents(stocked)
    for point in ("stage.before_files", "stage.after_files", "stage.after_version"):
        with failpoints.arm(point, "error"), pytest.raises(StorageError, match=point):
            OPERATIONS[name](stocked)
        assert contents(stocked) == before
        assert contents(present(OPERATIONS[name](stocked))) == EXPECTED[name]


@pytest.mark.parametrize(
    "operation",
    [
        lambda table: stage_append(table, SCHEMA.empty_table()),
        lambda table: stage_append(table, SCHEMA.empty_table().to_reader()),
        lambda table: stage_append(table, combine(table, [])),
        lambda table: stage_delete_addresses(table, NOWHERE),
        lambda table: stage_replace(table, SCHEMA.empty_table(), NOWHERE),
        lambda table: stage_replace(table, combine(table, []), NOWHERE),
        lambda table: stage_removed(table, combine(table, []), [], []),
    ],
)
@pytest.mark.parametrize("fixture", ["empty", "stocked"])
def test_what_changes_nothing_makes_no_version(
    request: pytest.FixtureRequest, fixture: str, operation: Callable[[Table], Table | None]
) -> None:
    table: Table = request.getfixturevalue(fixture)
    versions = set((Path(table.uri) / "_versions").iterdir())
    assert operation(table) is None
    assert set((Path(table.uri) / "_versions").iterdir()) == versions


def test_the_empty_table_takes_every_operation(empty: Table) -> None:
    assert stage_overwrite(empty, SCHEMA.empty_table()) is None
    assert contents(present(stage_upsert(empty, rows(parts([1, 2]))))) == by_id(parts([1, 2]))
    assert contents(present(stage_overwrite(empty, rows(parts([3]))))) == by_id(parts([3]))


def test_an_emptied_table_goes_on(stocked: Table) -> None:
    for emptied in (
        stage_overwrite(stocked, SCHEMA.empty_table()),
        stage_delete_where(stocked, "true"),
    ):
        assert contents(present(emptied)) == {}
        assert present(emptied).count_fragments() == 0
        refilled = stage_append(present(emptied), rows(parts([6])))
        assert contents(present(refilled)) == by_id(parts([6]))


def test_columns_may_come_in_any_order(stocked: Table) -> None:
    shuffled = rows(parts([8])).select(["stock", "drawing", "id", "tags", "shape", "name"])
    appended = present(stage_append(stocked, shuffled))
    upserted = present(stage_upsert(appended, shuffled))
    assert contents(upserted) == by_id(parts([*range(6), 8]))
    assert upserted.schema == SCHEMA


def test_blobs_come_back_after_every_operation(empty: Table) -> None:
    table = present(stage_append(empty, rows([part(1, drawing=LARGE), part(2, drawing=None)])))
    table = present(stage_upsert(table, rows([part(2, drawing=LARGE * 2), part(3, drawing=b"")])))
    table = present(stage_delete_where(table, "`id` = '1'"))
    drawings = {key: row["drawing"] for key, row in contents(table).items()}
    assert drawings == {"2": LARGE * 2, "3": b""}


def test_a_reader_is_cut_into_files(empty: Table) -> None:
    batches = (
        batch for n in range(5) for batch in rows(parts(range(n * 4, n * 4 + 4))).to_batches()
    )
    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches)
    written = write_append(empty, reader, max_rows_per_file=8)
    assert written.row_count == 20
    table = present(stage_append(empty, written))
    assert [fragment.physical_rows for fragment in table.dataset.get_fragments()] == [8, 8, 4]
    assert contents(table) == by_id(parts(range(20)))


def test_writers_elsewhere_send_descriptions(stocked: Table) -> None:
    pieces = [write_append(stocked, rows(parts([number]))) for number in (10, 11, 12)]
    assert stocked.count_rows() == 6
    sent = [
        StagedFragments.from_json(pieces[0].to_json()),
        pickle.loads(pickle.dumps(pieces[1])),
        pieces[2],
    ]
    assert sent == pieces
    together = combine(stocked, sent)
    assert together.row_count == 3
    appended = present(stage_append(stocked, together))
    assert contents(appended) == by_id(parts([*range(6), 10, 11, 12]))
    replaced = present(stage_overwrite(stocked, together))
    assert contents(replaced) == by_id(parts([10, 11, 12]))


def test_written_files_fit_a_newer_version(stocked: Table, tmp_path: Path) -> None:
    """As for a load that others have overtaken: nothing is written again."""
    written = write_append(stocked, rows(parts([10])))
    moved = present(stage_delete_keys(stocked, pa.array(["0"])))
    moved = present(stage_append(moved, rows(parts([20]))))
    before = files_below(tmp_path, "data")
    assert set(contents(present(stage_append(moved, written)))) == {*"12345", "10", "20"}
    assert files_below(tmp_path, "data") == before


def test_files_do_not_go_into_other_columns(stocked: Table) -> None:
    """Two siblings give one field id to different columns: each file keeps to its own."""
    height = add_null_column(stocked, pa.field("height", pa.int64()))
    colour = add_null_column(stocked, pa.field("colour", pa.utf8()))
    items = rows([part(9, height=3)], height.schema)
    written = write_append(height, items)
    with pytest.raises(PreconditionFailed, match="column layout"):
        stage_append(colour, written)
    with pytest.raises(PreconditionFailed, match="column layout"):
        combine(colour, [written])


def test_an_overwrite_keeps_field_ids_and_index_definitions(stocked: Table) -> None:
    table = drop_column(stocked, "name")
    table = add_null_column(table, pa.field("note", pa.utf8()))
    request = IndexRequest("id", SegmentKind.BTREE, "id_btree")
    table = present(stage_index(table, request))
    ids = [field.id() for field in table.dataset.lance_schema.fields()]
    assert ids != list(range(len(ids)))
    replaced = present(stage_overwrite(table, rows([part(3)], table.schema)))
    assert [field.id() for field in replaced.dataset.lance_schema.fields()] == ids
    assert [found.name for found in replaced.dataset.describe_indices()] == ["id_btree"]
    assert replaced.read(where="`id` = '3'").num_rows == 1
    assert replaced.read(where="`id` = '1'").num_rows == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given.drop_columns(["stock", "tags"]), "the rows have no `stock`, `tags`"),
        (lambda given: given.append_column("extra", pa.array([1])), "the table has no `extra`"),
        (lambda given: given.append_column("id", pa.array(["x"])), "a column is given twice"),
        (
            lambda given: given.set_column(2, "stock", pa.array(["three"])),
            "`stock` is string, expected int64",
        ),
        (
            lambda given: given.set_column(0, "id", pa.array([None], pa.utf8())),
            "`id` is null in 1 rows and may not be",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    stocked: Table, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    given = change(rows(parts([9])))
    for attempt in (
        lambda: stage_append(stocked, given),
        lambda: stage_append(stocked, given.to_reader()),
        lambda: stage_replace(stocked, given, NOWHERE),
        lambda: stage_overwrite(stocked, given),
    ):
        with pytest.raises(RecordError, match=message) as caught:
            attempt()
        assert caught.value.table == LOCATION


def test_a_failing_source_keeps_its_own_error(stocked: Table) -> None:
    def batches(problem: Exception) -> Iterator[pa.RecordBatch]:
        yield from rows(parts([9])).to_batches()
        raise problem

    def append(problem: Exception) -> None:
        stage_append(stocked, pa.RecordBatchReader.from_batches(SCHEMA, batches(problem)))

    with pytest.raises(RecordError, match="line 17"):
        append(RecordError("line 17 is no JSON"))
    with pytest.raises(StorageError, match="writing rows failed"):
        append(KeyError("unheard of"))
    with pytest.raises(StorageError, match=r"writing rows failed at .*: disk on fire"):
        append(OSError("disk on fire"))
    assert contents(stocked) == by_id(parts(range(6)))


def test_a_delete_touches_only_fragments_that_lose_rows(stocked: Table) -> None:
    after = present(stage_delete_addresses(stocked, addresses_of(stocked, ["4"])))
    deleted = [fragment.num_deletions for fragment in after.dataset.get_fragments()]
    assert deleted == [0, 1]
    emptied = present(stage_delete_addresses(stocked, addresses_of(stocked, ["0", "1", "2"])))
    assert [fragment.fragment_id for fragment in emptied.dataset.get_fragments()] == [1]


def test_the_same_chain_on_every_store(graph_root: str) -> None:
    table = new_table(graph_root)
    table = present(stage_append(table, rows(parts(range(6), drawing=LARGE))))
    table = present(stage_index(table, IndexRequest("id", SegmentKind.BTREE, "id_btree")))
    table = present(stage_upsert(table, rows(parts([5, 6]))))
    table = rename_column(table, "name", "label")
    table = present(stage_delete_keys(table, pa.array(["0"])))
    table = present(stage_delete_where(table, "`stock` = 1"))
    expected = by_id([*parts([2, 3, 4], drawing=LARGE), *parts([5, 6])])
    for row in expected.values():
        row["label"] = row.pop("name")
    reopened = open_table(table.store, LOCATION, table.physical_version)
    assert json.dumps(contents(reopened), default=str, sort_keys=True) == json.dumps(
        expected, default=str, sort_keys=True
    )
