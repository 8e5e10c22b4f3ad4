"""What a load can be given."""

from __future__ import annotations

import codecs
import gzip
import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.write.batches import Places
from omnigraph_core.write.sources import Format, open_sources, places_of
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path


class OneWay(io.RawIOBase):
    """A stream that cannot go back."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._data.readinto(buffer)


def content(source: object) -> bytes:
    with source.open() as stream:  # type: ignore[attr-defined]
        data: bytes = stream.read()
    return data


@each(
    ("name", "format", "type_name"),
    [
        ("a.jsonl", Format.JSONL, None),
        ("a.ndjson.gz", Format.JSONL, None),
        ("a.JSON", Format.JSONL, None),
        ("Part.csv", Format.CSV, "Part"),
        ("Part.csv.gz", Format.CSV, "Part"),
        ("nodes/Part.parquet", Format.PARQUET, "node:Part"),
        ("edges/Holds.arrow", Format.ARROW, "edge:Holds"),
        ("Part.feather", Format.ARROW, "Part"),
        ("Part.ipc", Format.ARROW, "Part"),
    ],
)
def test_names_tell(tmp_path: Path, name: str, format: Format, type_name: str | None) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    for given in (path, str(path)):
        (source,) = open_sources(given)
        assert (source.format, source.type_name, source.name) == (format, type_name, str(path))


def test_what_is_given_wins_over_the_name(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.touch()
    (source,) = open_sources(path, format="csv", type_name="edge:Holds")
    assert (source.format, source.type_name) == (Format.CSV, "edge:Holds")


def test_several_inputs(tmp_path: Path) -> None:
    path = tmp_path / "Part.csv"
    path.touch()
    sources = open_sources([path, pa.table({"a": [1]})], type_name="Part")
    assert [source.format for source in sources] == [Format.CSV, Format.ARROW]
    assert places_of(sources) == Places((str(path), None), ("line", "row"))


@each(
    ("data", "unit"),
    [
        (b"", "line"),
        (b"{}\n{}", "line"),
        (b"{} {}", "line"),  # no document: the second value is a mistake
        (b"[{}, {}]", "record"),
        (b"[\n{},\n{}\n]", "line"),
        (b"[\n{},\n{}, {}\n]", "record"),
        (b"{\n}\n{\n}{\n}", "line"),
        (b"{\n} {} {}", "record"),
    ],
)
def test_records_are_counted_where_lines_do_not_tell_them_apart(data: bytes, unit: str) -> None:
    assert places_of(open_sources(data)).units == (unit,)


def test_a_type_is_not_for_records(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    for given in (b"{}", path, [pa.table({"a": [1]}), b"{}"]):
        with pytest.raises(ConfigError, match="the records name their own"):
            open_sources(given, type_name="Part")  # type: ignore[arg-type]


@each("name", ["data.txt", "data", "data.gz", "Part.parquet.gz"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(ConfigError, match="cannot tell the format"):
        open_sources(tmp_path / name)


def test_missing_file_empty_directory_and_format(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        open_sources(tmp_path / "a.jsonl")
    with pytest.raises(ConfigError, match="no files to load in"):
        open_sources(tmp_path)
    with pytest.raises(ConfigError, match="unknown format `xml`"):
        open_sources(b"", format="xml")


@pytest.mark.parametrize("given", [pa.table({"a": [1]}), io.BytesIO(b"")])
def test_tables_need_a_type(given: object) -> None:
    with pytest.raises(ConfigError, match="need its name"):
        open_sources(given, format="csv")  # type: ignore[arg-type]


class OnlyRead:
    """What can be read and nothing else, in pieces."""

    def __init__(self, *pieces: str | bytes) -> None:
        self._pieces = list(pieces)

    def read(self, size: int) -> str | bytes:
        return self._pieces.pop(0) if size and self._pieces else b""


def test_what_can_only_be_read_is_enough() -> None:
    (source,) = open_sources(OnlyRead(b"one\n", b"two"))  # type: ignore[arg-type]
    assert content(source) == content(source) == b"one\ntwo"


def test_not_an_input(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    with codecs.open(str(path), encoding="utf-8") as text:
        for given in (7, io.StringIO("{}"), OnlyRead("text"), text):
            with pytest.raises(ConfigError, match="expected a path"):
                open_sources(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_every_input_can_be_read_twice(tmp_path: Path, compress: object) -> None:
    data = compress(b"line\n" * 100_000)  # type: ignore[operator]
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    stream = io.BytesIO(b"before" + data)
    stream.seek(6)
    for given in (path, data, stream, OneWay(data)):
        (source,) = open_sources(given)
        assert content(source) == content(source) == b"line\n" * 100_000
    assert not stream.closed


def test_a_reader_of_batches_can_be_read_twice() -> None:
    table = pa.table({"name": ["a", "b"]})
    (source,) = open_sources(table.to_reader(), type_name="Part")
    for _ in range(2):
        with source.open() as stream:
            assert pa.ipc.open_stream(pa.PythonFile(stream, "r")).read_all() == table


def test_a_named_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x")
    with path.open("rb") as binary, path.open() as text:
        for stream in (binary, text):
            (source,) = open_sources(stream, type_name="Part")  # type: ignore[arg-type]
            assert (source.format, source.name) == (Format.CSV, str(path))
            assert content(source) == b"x"
