"""What fragments have lost, as Lance lists it: the complement of what a scan finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken, ObjectNotFound
from omnigraph_core.storage import deleted_rows
from omnigraph_core.storage.dataset import create_table, open_table
from omnigraph_core.storage.deleted_rows import deleted_offsets
from omnigraph_core.storage.row_space import live_offsets
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import present
from tests.support.table_writes import stage_delete_keys

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

COUNT = 150_000
SCHEMA = pa.schema([pa.field("id", pa.utf8(), nullable=False)])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    store = open_store(str(tmp_path_factory.mktemp("lossy")))
    store.create_root()
    rows = pa.table({"id": [str(n) for n in range(COUNT)]}, schema=SCHEMA)
    return present(stage_append(create_table(store, "nodes/many", SCHEMA), rows))


def without(table: Table, numbers: range) -> Table:
    return present(stage_delete_keys(table, pa.array([str(n) for n in numbers])))


@pytest.mark.parametrize(
    "gone",
    [range(3, 9, 2), range(0, COUNT, 20), range(10_000, 100_000), range(1, COUNT)],
    ids=["a few", "many, scattered", "a stretch", "nearly all"],
)
def test_deleted_rows_are_those_that_do_not_live(table: Table, gone: range) -> None:
    fewer = without(table, gone)
    found = deleted_offsets(fewer, 0)
    assert found.dtype == np.uint32
    assert found.tolist() == list(gone)
    assert live_offsets(fewer, 0).tolist() == sorted({*range(COUNT)} - {*gone})


def test_deletions_add_up(table: Table) -> None:
    fewer = without(without(table, range(5)), range(7, 9))
    assert deleted_offsets(fewer, 0).tolist() == [0, 1, 2, 3, 4, 7, 8]


def test_a_fragment_that_lost_nothing(table: Table) -> None:
    assert deleted_offsets(table, 0).tolist() == []
    with pytest.raises(InvariantBroken):
        deleted_offsets(table, 7)


def test_a_form_that_is_not_known_is_asked_of_lance(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = without(table, range(3)), without(table, range(0, COUNT, 9))
    monkeypatch.setattr(deleted_rows, "_listed", lambda _: None)
    monkeypatch.setattr(deleted_rows, "parse_roaring", lambda _: None)
    assert deleted_offsets(few, 0).tolist() == [0, 1, 2]
    assert deleted_offsets(many, 0).tolist() == list(range(0, COUNT, 9))


def test_a_list_that_is_gone_is_told(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    rows = pa.table({"id": ["a", "b"]}, schema=SCHEMA)
    table = present(stage_append(create_table(store, "nodes/few", SCHEMA), rows))
    fewer = present(stage_delete_keys(table, pa.array(["a"])))
    for file in (tmp_path / "nodes/few/_deletions").iterdir():
        file.unlink()
    with pytest.raises(ObjectNotFound):
        deleted_offsets(
            open_table(open_store(str(tmp_path)), "nodes/few", fewer.physical_version), 0
        )
