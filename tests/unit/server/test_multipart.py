"""Names of clients tell type and format, and are never names of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.server.multipart import Parts, UploadedFile, _placed, check_types
from omnigraph_core.server.receiving import Budget
from tests.support.cases import each

HEADER = b'Content-Disposition: form-data; name="file"; filename="Part.csv"\r\n\r\n'


@each(
    ("given", "path", "shown"),
    [
        ("Part.csv", "1/data/Part.csv", "Part.csv"),
        ("edges/Holds.parquet", "1/edges/Holds.parquet", "Holds.parquet"),
        ("C:\\data\\nodes\\Part.CSV.GZ", "1/nodes/Part.CSV", "Part.CSV.GZ"),
        ("../../../etc/passwd", "1/data/passwd", "passwd"),
        ("..", "1/data/file-1", ".."),
        ("/", "1/data/file-1", "file 1"),
        ("", "1/data/file-1.jsonl", "file 1"),
        ("a b.jsonl", "1/data/file-1.jsonl", "a b.jsonl"),
        ("x" * 300 + ".csv", "1/data/file-1.csv", "x" * 100),
        ("nul\0.jso\nnl", "1/data/file-1", "nul.jsonl"),
    ],
)
def test_where_a_file_goes(given: str, path: str, shown: str) -> None:
    placed = _placed(Path("/spool"), 1, given)
    assert placed == UploadedFile(Path("/spool") / path, shown)
    assert placed.path.resolve().is_relative_to("/spool/1")


def test_tables_need_a_type() -> None:
    files = tuple(_placed(Path("/s"), number, name) for number, name in enumerate(["a b.csv"]))
    with pytest.raises(ConfigError, match=r"a b\.csv"):
        check_types(files, None, None)
    check_types(files, None, "Part")
    check_types((_placed(Path("/s"), 1, "a b.jsonl"),), None, None)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_parts_are_taken_in_wherever_they_are_cut(tmp_path: Path, size: int) -> None:
    body = b"--x\r\n" + HEADER + b"sku\r\n--xy\r\n" + b"\r\n--x\r\n" + HEADER + b"\r\n--x--\r\n"
    parts = Parts("multipart/form-data; boundary=x", tmp_path, Budget())
    for start in range(0, len(body), size):
        parts.write(body[start : start + size])
    first, second = parts.finish()
    assert first.path.read_bytes() == b"sku\r\n--xy\r\n"
    assert second.path.read_bytes() == b""
