"""Files in a multipart body: each part goes to a file of the spool while it arrives.

Names that clients give are read for the type and format they tell and shown in messages; the files
on the disk have names of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException

from omnigraph_core.errors import ConfigError
from omnigraph_core.server.receiving import Budget, Intake
from omnigraph_core.server.spool import spool_failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from python_multipart.multipart import MultipartCallbacks

PART: Final = "file"
_MOST_FILES: Final = 1_000
_TYPE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,10}")
_FOLDERS: Final = ("nodes", "edges")
_UNTYPED: Final = (".jsonl", ".ndjson", ".json")
_MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class UploadedFile:
    path: Path
    shown: str
    """What the client calls it."""


class Parts:
    """The files of a multipart body, taken in as its bytes come."""

    def __init__(self, content_type: str, directory: Path, budget: Budget) -> None:
        """
        Raises:
            HTTPException: 415, the body is not multipart.
            ConfigError: its boundary cannot be.
        """
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise HTTPException(415, "the body must be multipart/form-data with parts `file`")
        self.files: list[UploadedFile] = []
        self._directory = directory
        self._budget = budget
        self._intake: Intake | None = None
        self._file: IO[bytes] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._field = b""
        self._value = b""
        self._is_whole = False
        boundary = options.get(b"boundary", b"")
        if not boundary:
            raise ConfigError("the body is multipart and names no boundary")
        try:
            self._parser = MultipartParser(boundary, self._callbacks())
        except FormParserError as problem:
            raise ConfigError(f"the boundary of the body cannot be: {problem}") from problem

    def write(self, data: bytes) -> None:
        """
        Raises:
            ConfigError: the body is not well-formed.
            HTTPException: 413, it is too much.
            StorageError: the disk does not take it.
        """
        try:
            self._parser.write(data)
        except FormParserError as problem:
            raise ConfigError(f"the body is no multipart body: {problem}") from problem

    def finish(self) -> tuple[UploadedFile, ...]:
        """
        Raises:
            ConfigError: the body breaks off, or has no files.
        """
        if not self._is_whole:
            raise ConfigError("the multipart body breaks off")
        if not self.files:
            raise ConfigError(f"the body has no part `{PART}`")
        return tuple(self.files)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._headers.clear,
            "on_header_field": self._gather("_field"),
            "on_header_value": self._gather("_value"),
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_file,
            "on_part_data": self._take,
            "on_part_end": self._end_file,
            "on_end": self._end,
        }

    def _gather(self, name: str) -> Callable[[bytes, int, int], None]:
        def gather(data: bytes, start: int, end: int) -> None:
            setattr(self, name, getattr(self, name) + data[start:end])

        return gather

    def _end_header(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field = self._value = b""

    def _begin_file(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode(errors="replace")
        if name != PART:
            raise ConfigError(
                f"the body has a part {name[:_MOST_SHOWN]!r}",
                hint=f"send files as parts `{PART}`, and everything else as parameters",
            )
        if len(self.files) == _MOST_FILES:
            raise ConfigError(f"an upload has {_MOST_FILES} files at most")
        given = options.get(b"filename", b"").decode(errors="replace")
        self._open(_placed(self._directory, len(self.files) + 1, given))

    def _open(self, placed: UploadedFile) -> None:
        try:
            placed.path.parent.mkdir(mode=0o700, parents=True)
            self._file = placed.path.open("xb")
        except OSError as problem:
            raise spool_failed(problem) from problem
        self.files.append(placed)
        self._budget.note_file(str(placed.path.relative_to(self._directory)))
        self._intake = Intake(self._file, self._budget)

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._intake is not None:
            self._intake.write(data[start:end])

    def _end_file(self) -> None:
        if self._intake is None:
            raise ConfigError("a part of the body has no headers")
        self._intake.finish()
        self.close()
        self._intake = None

    def _end(self) -> None:
        self._is_whole = True


def check_types(files: tuple[UploadedFile, ...], format: str | None, type: str | None) -> None:
    """Refuse tables whose type neither their name nor the request tells.

    Raises:
        ConfigError: names all of them.
    """
    if type is not None or format == "jsonl":
        return
    unknown = [
        file.shown
        for file in files
        if file.path.suffix.lower() not in (*_UNTYPED, "") and file.path.stem.startswith("file-")
    ]
    if unknown:
        raise ConfigError(
            f"{', '.join(unknown)}: cannot tell the type of the rows from the name",
            hint="give the type, or call files as types are: Person.csv, edges/Knows.parquet",
        )


def _placed(directory: Path, number: int, given: str) -> UploadedFile:
    """Where a file goes: of the name the client gave only what a type or a format can be is kept.

    >>> _placed(Path("/spool"), 1, "../../edges/Knows.csv.gz").path
    PosixPath('/spool/1/edges/Knows.csv')
    >>> _placed(Path("/spool"), 2, "/etc/passwd: 1").path
    PosixPath('/spool/2/data/file-2')
    """
    named = PurePosixPath(given.replace("\\", "/"))
    plain = named.with_suffix("") if named.suffix.lower() == ".gz" else named
    suffix = plain.suffix if _SUFFIX.fullmatch(plain.suffix) else ""
    stem = plain.stem if _TYPE_NAME.fullmatch(plain.stem) else f"file-{number}"
    if not given:
        suffix = ".jsonl"
    folder = named.parent.name if named.parent.name in _FOLDERS else "data"
    shown = "".join(letter for letter in named.name if letter.isprintable())[:_MOST_SHOWN]
    path = directory / str(number) / folder / f"{stem}{suffix}"
    return UploadedFile(path, shown or f"file {number}")
