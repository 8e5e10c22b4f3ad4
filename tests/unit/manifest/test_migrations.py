"""Formats of catalogs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph_core.constants import INTERNAL_SCHEMA_VERSION
from omnigraph_core.errors import FormatTooNew, StorageError
from omnigraph_core.manifest.migrations import STAMP_KEY, STEPS, stamp_of, upgrade_rows
from omnigraph_core.manifest.rows import IMAGE_SCHEMA, decode_image, encode_image
from tests.support.cases import each
from tests.unit.manifest.samples import entry, image

CURRENT = INTERNAL_SCHEMA_VERSION.value
SAMPLE = image(entry())


def stamped(stamp: str | bytes) -> pa.Table:
    return encode_image(SAMPLE).replace_schema_metadata({STAMP_KEY: stamp})


def first_format() -> pa.Table:
    """As the first release wrote it: no stamp, no primary key."""
    rows = encode_image(SAMPLE)
    schema = pa.schema([field.remove_metadata() for field in rows.schema])
    return pa.Table.from_arrays(rows.columns, schema=schema)


def test_the_current_format_is_left_alone() -> None:
    rows = encode_image(SAMPLE)
    assert upgrade_rows(rows, where="here") is rows


def test_the_first_format_is_brought_up() -> None:
    upgraded = upgrade_rows(first_format(), where="here")
    assert upgraded.schema.equals(IMAGE_SCHEMA, check_metadata=True)
    assert upgraded.to_pylist() == first_format().to_pylist()
    assert decode_image(upgraded, where="here") == SAMPLE


def test_there_is_a_step_from_every_older_format() -> None:
    assert sorted(STEPS) == list(range(1, CURRENT))


@pytest.mark.parametrize("version", STEPS)
def test_a_step_done_twice_does_no_harm(version: int) -> None:
    once = STEPS[version](first_format(), "here")
    twice = STEPS[version](once, "here")
    assert twice.equals(once)
    assert twice.schema.equals(once.schema, check_metadata=True)


def test_other_metadata_stay() -> None:
    rows = first_format()
    field = rows.schema.field(0).with_metadata({"own": "f"})
    schema = pa.schema([field, *list(rows.schema)[1:]], metadata={"own": "s"})
    upgraded = upgrade_rows(pa.Table.from_arrays(rows.columns, schema=schema), where="here")
    assert upgraded.schema.metadata == {b"own": b"s", STAMP_KEY.encode(): str(CURRENT).encode()}
    assert upgraded.schema.field(0).metadata == {
        b"own": b"f",
        b"lance-schema:unenforced-primary-key": b"true",
    }


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(FormatTooNew) as caught:
        upgrade_rows(stamped(str(CURRENT + 1)), where="here")
    expected = f"the catalog at here has format {CURRENT + 1}; this release reads up to {CURRENT}"
    assert caught.value.message == expected
    assert caught.value.hint == "upgrade omnigraph first"


@each("stamp", ["", "0", "02", "-1", "2.0", "two", " 2", "1" * 10, b"\xff"])
def test_an_unreadable_stamp_is_shown(stamp: str | bytes) -> None:
    text = stamp.decode(errors="replace") if isinstance(stamp, bytes) else stamp
    with pytest.raises(StorageError) as caught:
        upgrade_rows(stamped(stamp), where="here")
    assert f"{STAMP_KEY} is {text!r}, not a number" in caught.value.message


def test_stamps() -> None:
    assert stamp_of(pa.schema([]), "here") == 1
    assert stamp_of(pa.schema([], metadata={"own": "x"}), "here") == 1
    assert stamp_of(IMAGE_SCHEMA, "here") == CURRENT


def test_another_primary_key_is_refused() -> None:
    rows = first_format()
    mark = {"lance-schema:unenforced-primary-key": "true"}
    fields = [field.with_metadata(mark) for field in list(rows.schema)[:2]]
    schema = pa.schema([*fields, *list(rows.schema)[2:]])
    with pytest.raises(StorageError, match="its primary key is object_id, object_type, not"):
        upgrade_rows(pa.Table.from_arrays(rows.columns, schema=schema), where="here")


def test_a_table_of_something_else_is_refused() -> None:
    with pytest.raises(StorageError, match="there is no column object_id"):
        upgrade_rows(pa.table({"id": ["a"]}), where="here")
