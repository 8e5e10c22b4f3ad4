"""Parts of files: a file is cut so that several readers share it and each line is read once.

A part of a text owns the lines that begin in it. Places are counted from the start of the part;
whoever knows how many there are before it adds them.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final, cast

from omnigraph_core.errors import ConfigError
from omnigraph_core.storage.inputs import LOOK_BYTES, ObjectFile

if TYPE_CHECKING:
    from pathlib import Path

_PIECE: Final = 1 << 20


@dataclass(slots=True)
class LineSlice:
    """The lines of a file that begin in a range of its bytes."""

    file: Path | ObjectFile
    start: int
    stop: int
    line_count: int = field(default=0, compare=False)
    """How many they are: known once they have been read to the end."""

    def open(self) -> IO[bytes]:
        """Their bytes. Reading them counts the lines anew."""
        self.line_count = 0
        return cast("IO[bytes]", _Lines(open_file(self.file), self))


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of a Parquet file."""

    file: Path | ObjectFile
    groups: tuple[int, ...]
    row_count: int

    def open(self) -> IO[bytes]:
        return open_file(self.file)


def open_file(file: Path | ObjectFile, *, is_look: bool = False) -> IO[bytes]:
    """The bytes of a file, unbuffered.

    Args:
        is_look: only a few of them are wanted, so a store is asked for few.

    Raises:
        ConfigError: it cannot be read.
    """
    if isinstance(file, ObjectFile):
        return file.open(LOOK_BYTES) if is_look else file.open()
    try:
        return cast("IO[bytes]", io.FileIO(file))
    except OSError as problem:
        raise ConfigError(f"cannot read {file}: {problem.strerror}") from problem


class _Lines(io.RawIOBase):
    """The bytes of a slice, from its first line to the end of its last."""

    def __init__(self, raw: IO[bytes], slice: LineSlice) -> None:
        super().__init__()
        self._raw = raw
        self._slice = slice
        self._at = self._first_line()
        self._is_over = self._at >= slice.stop
        self._ends_line = True

    def _first_line(self) -> int:
        """Where the first line begins: a line that begins before belongs to the part before."""
        if not self._slice.start:
            return 0
        at = self._slice.start - 1
        self._raw.seek(at)
        # Only as far as a line may begin: the parts of one long line would each read all the rest.
        while at < self._slice.stop - 1 and (data := self._raw.read(_PIECE)):
            newline = data.find(b"\n")
            if newline >= 0:
                self._raw.seek(at + newline + 1)
                return at + newline + 1
            at += len(data)
        return max(at, self._slice.stop)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        self._count(data)
        return len(data)

    def _next(self, size: int) -> bytes:
        """More bytes of the slice; none at its end."""
        if self._is_over:
            return b""
        data = self._raw.read(size)
        # A line ends the slice if the next one would begin at its stop or beyond.
        last = self._slice.stop - 1 - self._at
        end = data.find(b"\n", max(last, 0))
        self._at += len(data)
        if end >= 0:
            self._is_over = True
            data = data[: end + 1]
        return data

    def _count(self, data: bytes) -> None:
        slice = self._slice
        if data:
            slice.line_count += data.count(b"\n")
            self._ends_line = data.endswith(b"\n")
        elif not self._ends_line:
            slice.line_count += 1
            self._ends_line = True
