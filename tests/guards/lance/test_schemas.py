"""Schemas in Lance: field ids, metadata, and what a change of schema checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import lance
import pyarrow as pa
import pytest
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from lance.schema import LanceSchema

from tests.guards.lance import chain
from tests.guards.lance.chain import skus

if TYPE_CHECKING:
    from pathlib import Path

WIDE: Final = pa.schema([("id", pa.string()), ("name", pa.string()), ("weight", pa.float64())])
NARROW: Final = pa.schema([WIDE.field("id"), WIDE.field("weight")])


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    rows = pa.table([["a"], ["bolt"], [0.5]], schema=WIDE)
    return chain.append(chain.create(tmp_path / "parts", WIDE), rows)


def numbered(schema: LanceSchema) -> dict[str, int]:
    return {field.name(): field.id() for field in schema.fields()}


def test_a_schema_from_arrow_has_other_field_ids(table: LanceDataset) -> None:
    """Why a schema is changed by editing the table's own: columns are found by number."""
    assert numbered(table.lance_schema) == {"id": 0, "name": 1, "weight": 2}
    assert numbered(LanceSchema.from_pyarrow(NARROW)) == {"id": 0, "weight": 1}


def test_a_projection_with_wrong_ids_is_committed_and_unreadable(table: LanceDataset) -> None:
    """Nothing between us and a broken table: a Project is taken as it comes."""
    narrow = LanceSchema.from_pyarrow(NARROW)
    broken = chain.commit(table, LanceOperation.Project(narrow, preserves_nullability=True))
    assert broken.schema.names == ["id", "weight"]
    with pytest.raises(pa.ArrowInvalid, match="Expected 1 buffers in array of type Float64"):
        broken.to_table()


def test_a_merge_with_wrong_ids_is_refused(table: LanceDataset) -> None:
    """Added columns go through Merge, which does look at the ids."""
    fragments = [fragment.metadata for fragment in table.get_fragments()]
    merge = LanceOperation.Merge(fragments, LanceSchema.from_pyarrow(NARROW))
    with pytest.raises(OSError, match='remaps field id 1 from "name" to "weight"'):
        chain.commit(table, merge)


def test_files_are_checked_against_the_version_they_are_written_for(table: LanceDataset) -> None:
    """Why writers open the pin: a path stands for the linear head and its old schema."""
    wider = table.schema.append(pa.field("note", pa.string()))
    rows = pa.table([["b"], ["nut"], [0.1], ["new"]], schema=wider)
    fragments = write_fragments(rows, table, mode="overwrite")
    pin = chain.commit(table, LanceOperation.Overwrite(wider, fragments))
    assert chain.append(pin, rows).count_rows() == 2
    with pytest.raises(OSError, match=r"unexpected=\[note\]"):
        write_fragments(rows, table.uri, mode="append")


def test_nullable_columns_may_be_left_out(table: LanceDataset) -> None:
    """A table that gained a column still takes rows written without it."""
    grown = chain.append(table, pa.table({"id": ["b"]}))
    assert grown.to_table()["name"].to_pylist() == ["bolt", None]


def publish(base: LanceDataset, schema: pa.Schema | LanceSchema) -> LanceDataset:
    fragments = write_fragments(skus("a"), base, mode="overwrite")
    overwrite = LanceOperation.Overwrite(schema, fragments)
    return LanceDataset.commit(base, Transaction(base.version, overwrite), max_retries=0)


def test_an_overwrite_replaces_the_metadata_of_the_schema(tmp_path: Path) -> None:
    """The format stamp of a catalog rides in its schema: raised by a publish, kept by the next."""
    uri = str(tmp_path / "catalog")
    key = chain.SKUS.field("id").with_metadata({"role": "key"})
    stamped = chain.SKUS.set(0, key).with_metadata({"format": "2"})
    first = lance.write_dataset(skus("a").replace_schema_metadata({"format": "1"}), uri)
    assert first.schema.metadata == {b"format": b"1"}
    second = publish(first, stamped)
    third = publish(lance.dataset(uri), lance.dataset(uri).lance_schema)
    for dataset in (second, third, lance.dataset(uri)):
        assert dataset.schema.metadata == {b"format": b"2"}
        assert dataset.schema.field("id").metadata == {b"role": b"key"}
    assert lance.dataset(uri, version=1).schema.metadata == {b"format": b"1"}


def test_an_overwrite_without_metadata_removes_it(tmp_path: Path) -> None:
    """Why every publish writes the stamp: nothing is carried over."""
    first = lance.write_dataset(
        skus("a").replace_schema_metadata({"format": "1"}), str(tmp_path / "catalog")
    )
    assert publish(first, chain.SKUS).schema.metadata is None
