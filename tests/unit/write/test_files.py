"""Rows gathered into files: when a file is written, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import StorageError
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.write import files as files_module
from omnigraph_core.write.batches import FRESH
from omnigraph_core.write.files import TableFiles

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

CATALOG = compile_schema("node Note {\n  text: String?\n}\nnode Mark {\n  rank: I64?\n}")
NOTE, MARK = CATALOG.nodes["Note"], CATALOG.nodes["Mark"]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Table]:
    store = open_store(str(tmp_path))
    store.create_root()
    return {
        type.table_key: create_table(store, type.name, table_schema(type)) for type in (NOTE, MARK)
    }


def notes(*ids: str, text: str = "x") -> pa.Table:
    return pa.table({"id": list(ids), "text": [text] * len(ids), FRESH: [False] * len(ids)})


def data_files(tmp_path: Path) -> int:
    return len(list(tmp_path.rglob("*.lance")))


def test_rows_of_several_tables(tables: dict[str, Table]) -> None:
    written: list[int] = []
    with TableFiles(tables.__getitem__, written.append) as files:
        files.add(NOTE, notes("a", "b"))
        files.add(MARK, pa.table({"id": ["m"], "rank": pa.array([1], pa.int64())}))
        files.add(NOTE, notes("c"))
        assert written == [], "so few rows are not worth a file"
        done = files.finish()
    assert sorted(written) == [1, 3]
    assert sorted(done) == ["node:Mark", "node:Note"]
    staged = stage_append(tables["node:Note"], done["node:Note"])
    assert staged is not None
    assert staged.read(["id"]).column("id").to_pylist() == ["a", "b", "c"]
    assert staged.schema.names == ["id", "text"], "working columns are not stored"


def test_nothing_given_is_nothing_written(tables: dict[str, Table], tmp_path: Path) -> None:
    with TableFiles(tables.__getitem__, pytest.fail) as files:
        assert files.finish() == {}
    assert data_files(tmp_path) == 0


def test_files_grow_with_what_was_written(
    tables: dict[str, Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few files come of much data: each holds a share of all before it."""
    monkeypatch.setattr(files_module, "_LEAST_BYTES", 1000)
    rows = notes(*(f"{number:03d}" for number in range(100)))
    with TableFiles(tables.__getitem__, lambda rows: None) as files:
        for _ in range(100):
            files.add(NOTE, rows)
        done = files.finish()
    staged = stage_append(tables["node:Note"], done["node:Note"])
    assert staged is not None
    assert staged.count_rows() == 10_000
    assert 5 < data_files(tmp_path) < 25


def test_rows_keep_their_order(tables: dict[str, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_LEAST_BYTES", 1)
    ids = [f"{number:02d}" for number in range(30)]
    with TableFiles(tables.__getitem__, lambda rows: None) as files:
        for id in ids:
            files.add(NOTE, notes(id))
        done = files.finish()
    staged = stage_append(tables["node:Note"], done["node:Note"])
    assert staged is not None
    assert staged.read(["id"]).column("id").to_pylist() == ids


def test_a_failure_stops_what_is_waiting(tables: dict[str, Table], tmp_path: Path) -> None:
    def fail() -> None:
        with TableFiles(tables.__getitem__, pytest.fail) as files:
            files.add(NOTE, notes("a"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert data_files(tmp_path) == 0


def test_a_failed_file_fails_the_whole(tables: dict[str, Table], tmp_path: Path) -> None:
    (tmp_path / "Note" / "data").write_text("a file where the directory should be")
    with TableFiles(tables.__getitem__, lambda rows: None) as files:
        files.add(NOTE, notes("a"))
        with pytest.raises(StorageError):
            files.finish()


def test_many_tables_share_one_limit(
    tables: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is bounded in all, and the largest goes first."""
    monkeypatch.setattr(files_module, "_ALL_BYTES", 10_000)
    written: list[int] = []
    with TableFiles(tables.__getitem__, written.append) as files:
        files.add(NOTE, notes("a", text="x" * 8_000))
        files.add(MARK, pa.table({"id": ["m"], "rank": pa.array([1], pa.int64())}))
        files.add(MARK, pa.table({"id": ["n" * 4_000], "rank": pa.array([1], pa.int64())}))
        assert set(files._waiting_bytes) == {"node:Mark"}
        files.finish()
    assert sorted(written) == [1, 2]
