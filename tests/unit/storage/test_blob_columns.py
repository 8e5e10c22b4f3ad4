"""Bytes become blobs and come back: null stays null, empty stays empty, others are left alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance.blob import blob_array

from omnigraph_core.storage.blob_columns import (
    is_stored_blob,
    plain_rows,
    stored_column,
    to_plain,
    to_stored,
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("photo", pa.large_binary()),
        pa.field("photo#uri", pa.utf8()),
        pa.field("scan", pa.large_binary(), nullable=False),
    ],
    metadata={"kind": "part"},
)
VALUES = [b"one", None, b"", b"two"]


def test_schemas_go_there_and_back() -> None:
    stored = to_stored(SCHEMA)
    assert [field.name for field in stored if is_stored_blob(field)] == ["photo", "scan"]
    assert [field.nullable for field in stored] == [False, True, True, False]
    assert to_plain(stored).equals(SCHEMA, check_metadata=True)
    assert to_plain(SCHEMA) is SCHEMA


@pytest.mark.parametrize("start", [0, 1])
def test_bytes_become_what_lance_makes_of_them(start: int) -> None:
    """Also a slice, whose buffers begin earlier."""
    field = to_stored(SCHEMA).field("photo")
    column = pa.array(VALUES, pa.large_binary()).slice(start)
    made, expected = stored_column(column, field), blob_array(VALUES[start:])
    assert made.type == expected.type
    assert made.storage.to_pylist() == expected.storage.to_pylist()
    assert made.is_null().to_pylist() == column.is_null().to_pylist()


def test_chunks_stay_chunks() -> None:
    field = to_stored(SCHEMA).field("photo")
    chunks = pa.chunked_array([VALUES[:1], [], VALUES[1:]], pa.large_binary())
    made = stored_column(chunks, field)
    assert [len(chunk) for chunk in made.chunks] == [1, 0, 3]
    none = stored_column(pa.chunked_array([], pa.large_binary()), field)
    assert (none.type, len(none)) == (field.type, 0)


def test_other_columns_are_left_alone() -> None:
    column = pa.array(["a"])
    assert stored_column(column, SCHEMA.field("id")) is column


def test_rows_lose_the_marks_of_their_fields() -> None:
    marked = SCHEMA.field("photo").with_metadata({"ARROW:extension:metadata": ""})
    rows = pa.table([VALUES, ["a"] * 4], pa.schema([marked, ("id", pa.utf8())]))
    for given in (rows, rows.to_batches()[0]):
        assert plain_rows(given, []) is given
        cleaned = plain_rows(given, ["photo", "scan"])
        assert cleaned.schema.field("photo").equals(SCHEMA.field("photo"), check_metadata=True)
        assert cleaned.to_pylist() == rows.to_pylist()
