"""The digest of a source: its content and what it is read as, nothing else."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.write.digest import content_digest
from omnigraph_core.write.sources import open_sources

if TYPE_CHECKING:
    from pathlib import Path

DATA = b'{"type": "Note"}\n' * 100_000


def digest(given: Any, **options: Any) -> bytes:
    (source,) = open_sources(given, **options)
    return content_digest(source)


def test_wherever_the_content_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(DATA)
    packed = tmp_path / "other.json.gz"
    packed.write_bytes(gzip.compress(DATA))
    with path.open("rb") as stream:
        found = [digest(given) for given in (DATA, path, str(path), packed, stream)]
    assert set(found) == {digest(io.BytesIO(DATA))}


def test_a_source_can_be_read_after_it() -> None:
    (source,) = open_sources(io.BytesIO(DATA))
    assert content_digest(source) == content_digest(source)
    with source.open() as stream:
        assert stream.read() == DATA


def test_other_content_and_other_meaning_differ() -> None:
    csv = {"format": "csv", "type_name": "Part"}
    found = [
        digest(b"sku\na"),
        digest(b"sku\nb"),
        digest(b"sku\na", **csv),
        digest(b"sku\na", **{**csv, "type_name": "Bin"}),
        digest(b"sku\na\n"),
        digest(b""),
    ]
    assert len(set(found)) == len(found)


def test_tables_by_their_rows() -> None:
    whole = pa.table({"sku": ["a", "b"]})
    parts = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 1)])
    assert digest(whole, type_name="Part") == digest(parts, type_name="Part")
    assert digest(whole, type_name="Part") != digest(whole.slice(0, 1), type_name="Part")
    assert digest(whole, type_name="Part") != digest(whole, type_name="Bin")
    other_name = whole.rename_columns(["name"])
    assert digest(whole, type_name="Part") != digest(other_name, type_name="Part")


def test_tables_by_their_values_not_by_their_dictionaries() -> None:
    def coded(values: list[str], order: list[str]) -> pa.Array:
        indices = pa.array([order.index(value) for value in values], pa.int8())
        return pa.DictionaryArray.from_arrays(indices, order)

    def in_lists(values: pa.Array) -> list[pa.Array]:
        ends = [0, len(values)]
        return [
            pa.ListArray.from_arrays(ends, values),
            pa.LargeListArray.from_arrays(ends, values),
            pa.FixedSizeListArray.from_arrays(values, len(values)),
            pa.ListViewArray.from_arrays([0], [len(values)], values),
        ]

    def known(values: pa.Array) -> list[bytes]:
        tables = [pa.table({"sku": column}) for column in (values, *in_lists(values))]
        return [digest(table, type_name="Part") for table in tables]

    first, other = coded(["a", "b"], ["a", "b"]), coded(["y", "z"], ["y", "z"])
    assert set(known(first)).isdisjoint(known(other))
    assert known(first) == known(coded(["a", "b"], ["b", "c", "a"]))
    assert known(first)[0] == known(pa.array(["a", "b"]))[0]
    chunks = pa.chunked_array([coded(["a"], ["a"]), coded(["b"], ["b"])])
    assert digest(pa.table({"sku": chunks}), type_name="Part") == known(first)[0]


def test_a_file_that_breaks_off_is_for_the_reader_to_report() -> None:
    packed = gzip.compress(DATA)
    assert digest(packed[:-9]) == digest(packed[:-9])
    assert digest(packed[:60]) != digest(packed)
