"""A file cut into parts: every line is in exactly one of them, and counted there."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.errors import ConfigError
from omnigraph_core.write import slices
from omnigraph_core.write.slices import LineSlice

if TYPE_CHECKING:
    from pathlib import Path

PIECES = st.lists(st.sampled_from([b"\n", b"a", b"bb\n", b"cccc", b"\n\n", b"d\r\n"]), max_size=30)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slices") / "lines.txt"


@given(pieces=PIECES, at=st.lists(st.floats(0, 1), max_size=4), size=st.integers(1, 8))
def test_parts_share_a_file(file: Path, pieces: list[bytes], at: list[float], size: int) -> None:
    data = b"".join(pieces)
    file.write_bytes(data)
    bounds = sorted([0, len(data), *(round(share * len(data)) for share in at)])
    found, count = [], 0
    for start, stop in pairwise(bounds):
        part = LineSlice(file, start, stop)
        with io.BufferedReader(part.open(), size) as stream:
            found.append(stream.read())
        count += part.line_count
    assert b"".join(found) == data
    assert count == data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def test_reading_again_counts_anew(file: Path) -> None:
    file.write_bytes(b"a\nb\nc")
    part = LineSlice(file, 0, 5)
    for _ in range(2):
        with part.open() as stream:
            assert stream.read() == b"a\nb\nc"
        assert part.line_count == 3


def test_a_file_that_is_gone(file: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        LineSlice(file.with_name("gone"), 0, 1).open()


def test_parts_of_one_long_line_read_no_more_than_themselves(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "_PIECE", 16)
    file.write_bytes(b"a" * 2_000 + b"\nb\n")
    read = 0

    class Counted(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:  # type: ignore[override]
            nonlocal read
            data = super().read(size)
            read += len(data)
            return data

    monkeypatch.setattr(slices, "open_file", Counted)
    counts = []
    for start, stop in pairwise([*range(0, 2_000, 100), 2_003]):
        part = LineSlice(file, start, stop)
        with io.BufferedReader(part.open(), 16) as stream:
            stream.read()
        counts.append(part.line_count)
    assert counts == [1, *[0] * 18, 1]
    assert read < 2 * 2_003 + 20 * 32, "the first part reads the line, the others themselves"
