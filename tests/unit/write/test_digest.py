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


def test_a_file_that_breaks_off_is_for_the_reader_to_report() -> None:
    packed = gzip.compress(DATA)
    assert digest(packed[:-9]) == digest(packed[:-9])
    assert digest(packed[:60]) != digest(packed)
