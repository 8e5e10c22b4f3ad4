"""Blobs and lookups in Lance: what it stores where, and what it cannot be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.blob import Blob, blob_array, blob_field

from tests.guards.lance import chain

if TYPE_CHECKING:
    from pathlib import Path

    from lance.dataset import LanceDataset

SCHEMA: Final = pa.schema([pa.field("id", pa.utf8(), nullable=False), blob_field("photo")])
CONTENTS: Final = (None, b"", b"inline", b"p" * 100_000, b"d" * 5_000_000)


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """A blob of each kind: none, empty, in the data file, in a shared file, in one of its own."""
    return chain.append(chain.create(tmp_path / "parts", SCHEMA), photos(*CONTENTS))


def photos(*contents: object) -> pa.Table:
    ids = [str(number) for number in range(len(contents))]
    return pa.Table.from_arrays([pa.array(ids), blob_array(list(contents))], schema=SCHEMA)


def read(dataset: LanceDataset) -> list[bytes | None]:
    column = dataset.to_table(blob_handling="all_binary").column("photo")
    assert column.type == pa.large_binary()
    return column.to_pylist()


def blob_files(dataset: LanceDataset, root: Path) -> list[str]:
    """Files with blobs, in directories that are named after the data files of the version."""
    stems = [file.path.removesuffix(".lance") for file in data_files(dataset)]
    found = sorted((root / "parts/data").rglob("*.blob"))
    return [path.name for path in found if path.parent.name in stems]


def data_files(dataset: LanceDataset) -> list[object]:
    return [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]


def test_null_is_not_empty(table: LanceDataset) -> None:
    """Both are values of a property; a file format that mixes them up would lose one."""
    assert tuple(read(table)) == CONTENTS
    assert tuple(read(chain.upsert(table, photos(*CONTENTS)))) == CONTENTS


def test_blobs_belong_to_the_data_file_of_their_rows(table: LanceDataset, tmp_path: Path) -> None:
    """The sweep keeps and removes a data file and its blobs as one."""
    assert len(blob_files(table, tmp_path)) == 2
    twice = chain.append(table, photos(*CONTENTS))
    compacted = chain.compact(twice)
    assert not {file.path for file in data_files(twice)} & {
        file.path for file in data_files(compacted)
    }
    assert len(blob_files(compacted, tmp_path)) >= 3, "a compaction copies blobs, it does not refer"
    for path in (tmp_path / "parts/data").rglob("*"):
        stem = path.parent.name if path.suffix == ".blob" else path.stem
        if path.is_file() and f"{stem}.lance" not in {file.path for file in data_files(compacted)}:
            path.unlink()
    assert read(compacted) == [*CONTENTS, *CONTENTS]


def test_a_scan_and_a_take_describe_blobs(table: LanceDataset) -> None:
    """Bytes have to be asked for: `blob_handling`, and for taken rows `read_blobs`."""
    scanned, taken = table.to_table(), table._take_rows([0, 4], columns=["photo"])
    for described in (scanned, taken):
        assert pa.types.is_struct(described.schema.field("photo").type)
        assert pc.struct_field(described.column("photo"), "size").to_pylist()[-1] == 5_000_000
    read = table.read_blobs("photo", addresses=[4, 0, 1, 4], preserve_order=True)
    assert [content for _, content in read] == [CONTENTS[number] for number in (4, 0, 1, 4)]


def test_lance_opens_the_address_of_a_blob(table: LanceDataset) -> None:
    """Why addresses of blobs kept elsewhere are in a column of ours: this is no place for them."""
    elsewhere = photos(Blob.from_uri("https://example.invalid/photo.jpg"))
    with pytest.raises((OSError, ValueError)):
        chain.append(table, elsewhere)


@pytest.mark.parametrize("type", [pa.uint32(), pa.uint64(), pa.date64()])
def test_some_types_have_no_typed_filter(tmp_path: Path, type: pa.DataType) -> None:
    """Why values of these are looked up with SQL."""
    values = pa.array([0, 86_400_000], pa.int64()).cast(type)
    plain = chain.create(tmp_path / "parts", pa.schema([("id", pa.utf8()), ("value", type)]))
    plain = chain.append(plain, pa.table({"id": ["a", "b"], "value": values}))
    with pytest.raises(ValueError, match="not yet supported by Substrait"):
        plain.to_table(filter=pc.field("value").isin(values[:1]))
    literal = "arrow_cast(0, 'Date64')" if type == pa.date64() else "0"
    found = plain.to_table(filter=f"`value` IN ({literal})")
    assert found.column("id").to_pylist() == ["a"]
