"""What a load can be given: paths, bytes, streams and Arrow data in; named, typed sources out.

A directory and a pattern become a source for each of their files. A source can be read any number
of times: a stream that cannot go back is copied to a temporary file. What can be refused without
reading (no such file, no format, no type) is refused here, all of it at once. Files of a store are
read in place.
"""

from __future__ import annotations

import gzip
import io
import tempfile
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Final, TypeAlias, TypeVar, cast

import pyarrow as pa

from omnigraph_core.errors import ConfigError
from omnigraph_core.storage.inputs import LOOK_BYTES, ObjectFile, is_object_address
from omnigraph_core.write.batches import Places
from omnigraph_core.write.input_files import InputProblems, local_files, object_files
from omnigraph_core.write.jsonl_document import unit_of
from omnigraph_core.write.slices import LineSlice, RowGroups, open_file

One: TypeAlias = str | Path | bytes | bytearray | IO[bytes] | pa.Table | pa.RecordBatchReader
Given: TypeAlias = One | Sequence[One]
"""What callers pass: one input or several."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_MEBIBYTE: Final = 1 << 20
_LOOKS_AT_ONCE: Final = 16
T = TypeVar("T")


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_tabular(self) -> bool:
        """Rows of one type, which the data itself does not name."""
        return self is not Format.JSONL

    @property
    def is_text(self) -> bool:
        """Counted in lines, and possibly compressed as a whole."""
        return self in (Format.JSONL, Format.CSV)


_SUFFIXES: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
}
_FOLDERS: Final = {"nodes": "node:", "edges": "edge:"}


class Spool:
    """A copy of what can be read only once; gone when nobody refers to it any more."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        weakref.finalize(self, self.file.close)


@dataclass(frozen=True, slots=True)
class Source:
    """One input. `type_name` is `Person`, `node:Person` or `edge:Knows`; None for records."""

    data: Path | bytes | IO[bytes] | Spool | ObjectFile | LineSlice | RowGroups | pa.Table
    format: Format
    name: str | None = None
    type_name: str | None = None
    start: int = 0
    """Where a stream stood when it was given."""
    digest: bytes | None = None
    """What tells the content from others, if that is known better than its bytes tell it."""
    has_decimals: bool = False
    """Columns of decimals are numbers like others: whoever gives them has no better type."""

    @property
    def size(self) -> int:
        """The bytes of a file as it is kept; 0 for anything else.

        Raises:
            ConfigError: the file has gone since it was given.
        """
        if isinstance(self.data, ObjectFile):
            return self.data.size
        if not isinstance(self.data, Path):
            return 0
        try:
            return self.data.stat().st_size
        except OSError as problem:
            raise ConfigError(f"cannot read {self.data}: {problem.strerror}") from problem

    def open(self, *, is_look: bool = False) -> IO[bytes]:
        """Its bytes from the start, decompressed. Closing leaves a given stream open.

        Args:
            is_look: only a few of them are wanted, so a store is asked for few.

        Raises:
            ConfigError: the file cannot be read, as when it has gone since it was given.
        """
        if isinstance(self.data, pa.Table):
            raise TypeError("a table has no bytes")
        raw = self._raw(self.data, is_look=is_look)
        if not self.format.is_text:
            return raw
        size = LOOK_BYTES if is_look else _MEBIBYTE
        buffered = cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", raw), size))
        if cast("io.BufferedReader", buffered).peek(2)[:2] == _GZIP_MAGIC:
            return cast("IO[bytes]", _OwningGzip(buffered))
        return buffered

    def _raw(
        self,
        data: Path | bytes | IO[bytes] | Spool | ObjectFile | LineSlice | RowGroups,
        *,
        is_look: bool,
    ) -> IO[bytes]:
        if isinstance(data, bytes):
            return io.BytesIO(data)
        if isinstance(data, LineSlice | RowGroups):
            return data.open()
        if isinstance(data, ObjectFile | Path):
            return open_file(data, is_look=is_look)
        stream = data.file if isinstance(data, Spool) else data
        stream.seek(self.start)
        return cast("IO[bytes]", _Borrowed(stream))


class _OwningGzip(gzip.GzipFile):
    """Closes the compressed file with itself, which `GzipFile` does only for its own."""

    def __init__(self, compressed: IO[bytes]) -> None:
        super().__init__(fileobj=compressed, mode="rb")
        self._compressed = compressed

    def close(self) -> None:
        super().close()
        self._compressed.close()


class _Borrowed(io.RawIOBase):
    """A stream that stays open when its reader is closed."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


def open_sources(
    given: Given, *, format: Format | str | None = None, type_name: str | None = None
) -> tuple[Source, ...]:
    """The sources in what a caller gave; nothing is read yet but streams that cannot go back.

    Text is a path, a directory or a pattern; bytes are JSONL. A format or type given here holds for
    all of them; otherwise they follow from the name of the file: `Person.csv`,
    `nodes/Person.parquet`, `edges/Knows.csv`.

    Raises:
        ConfigError: no such file, the format or type of one is not known, or a type is given for
            records, which name their own. Names all inputs that have a problem.
    """
    chosen = None if format is None else _format(format)
    items = given if isinstance(given, Sequence) and not isinstance(given, _SINGLE) else (given,)
    sources: list[Source] = []
    problems = InputProblems()
    for item in items:
        with problems.gathered():
            files = _files(cast("One", item), problems)
            for file in files:
                with problems.gathered(is_listed=len(files) > 1):
                    sources.append(_checked(_source(file, chosen, type_name)))
    problems.check()
    return tuple(sources)


def places_of(sources: Sequence[Source]) -> Places:
    """How rows of these sources are named in messages; looks into JSON that is not lines."""
    return Places(tuple(s.name for s in sources), tuple(look_into(sources, _unit)))


def look_into(sources: Sequence[Source], look: Callable[[Source], T]) -> list[T]:
    """What a look into each source finds; files of a store are looked into side by side."""
    if sum(isinstance(source.data, ObjectFile) for source in sources) < 2:
        return [look(source) for source in sources]
    pool = ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="look")
    try:
        found = [
            pool.submit(look, source) if isinstance(source.data, ObjectFile) else None
            for source in sources
        ]
        return [
            look(source) if there is None else there.result()
            for source, there in zip(sources, found, strict=True)
        ]
    finally:
        pool.shutdown(cancel_futures=True)


def _unit(source: Source) -> str:
    if source.format is Format.JSONL:
        return unit_of(source)
    return "line" if source.format.is_text else "row"


_SINGLE: Final = (str, Path, bytes, bytearray)


def _format(given: Format | str) -> Format:
    try:
        return Format(given)
    except ValueError:
        known = ", ".join(Format)
        raise ConfigError(f"unknown format `{given}`; expected one of {known}") from None


def _files(item: One, problems: InputProblems) -> Sequence[One | ObjectFile]:
    """What an input stands for: itself, or the files of a directory or pattern."""
    if isinstance(item, str) and is_object_address(item):
        return object_files(item)
    return local_files(Path(item), problems.add) if isinstance(item, str | Path) else [item]


def _source(item: One | ObjectFile, format: Format | None, type_name: str | None) -> Source:
    if isinstance(item, ObjectFile):
        kind, type_name = _kind(item.address, Path(item.path), format, type_name)
        return Source(item, kind, item.address, type_name)
    if isinstance(item, str | Path):
        return _file(Path(item), format, type_name)
    if isinstance(item, bytes | bytearray):
        return Source(bytes(item), format or Format.JSONL, None, type_name)
    if isinstance(item, pa.Table | pa.RecordBatch):
        table = item if isinstance(item, pa.Table) else pa.Table.from_batches([item])
        return Source(table, Format.ARROW, None, type_name)
    if isinstance(item, pa.RecordBatchReader):
        return Source(_spooled_rows(item), Format.ARROW, None, type_name)
    return _stream(item, format, type_name)


def _file(path: Path, format: Format | None, type_name: str | None) -> Source:
    if not path.exists():
        raise ConfigError(f"no such file: {path}")
    kind, type_name = _kind(str(path), path.absolute(), format, type_name)
    if not path.is_file():  # a pipe can be read once
        with path.open("rb") as stream:
            return Source(_spooled(stream), kind, str(path), type_name)
    return Source(path, kind, str(path), type_name)


def _kind(
    name: str, path: Path, format: Format | None, type_name: str | None
) -> tuple[Format, str | None]:
    """The format of a file and the type of its rows, as far as they are given or its path tells."""
    stem, found = _by_suffix(path.name)
    if format is None and found is None:
        known = " ".join(_SUFFIXES)
        raise ConfigError(
            f"{name}: cannot tell the format from the name",
            hint=f"name the format, or use one of the suffixes {known}",
        )
    kind = format or cast("Format", found)
    if type_name is None and kind.is_tabular:
        type_name = _FOLDERS.get(path.parent.name, "") + stem
    return kind, type_name


def _by_suffix(name: str) -> tuple[str, Format | None]:
    """A file name without its suffixes, and the format they tell.

    >>> _by_suffix("Person.csv.gz"), _by_suffix("Person.parquet.gz")
    (('Person', <Format.CSV: 'csv'>), ('Person.parquet', None))
    """
    plain = name[:-3] if name.lower().endswith(".gz") else name
    found = _SUFFIXES.get(Path(plain).suffix.lower())
    if plain is not name and (found is None or not found.is_text):
        return plain, None
    return Path(plain).stem if found else plain, found


def _stream(item: IO[bytes], format: Format | None, type_name: str | None) -> Source:
    stream: IO[bytes] = getattr(item, "buffer", item)  # the bytes below a text stream
    if not hasattr(stream, "read") or not isinstance(stream.read(0), bytes):
        raise _not_binary(item)
    named = getattr(stream, "name", None)
    name = named if isinstance(named, str) else None
    if format is None:
        format = (_by_suffix(Path(name).name)[1] if name else None) or Format.JSONL
    if hasattr(stream, "seekable") and stream.seekable():
        return Source(stream, format, name, type_name, stream.tell())
    return Source(_spooled(stream), format, name, type_name)


def _not_binary(item: object) -> ConfigError:
    return ConfigError(f"expected a path, bytes, a binary stream or Arrow data, found {item!r}")


def _spooled(stream: IO[bytes]) -> Spool:
    spool = Spool()
    while data := stream.read(_MEBIBYTE):
        if not isinstance(data, bytes):
            raise _not_binary(stream)
        spool.file.write(data)
    return spool


def _spooled_rows(reader: pa.RecordBatchReader) -> Spool:
    spool = Spool()
    with pa.ipc.new_stream(pa.PythonFile(spool.file, "w"), reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    return spool


def _checked(source: Source) -> Source:
    """The source, if it has a type exactly when its rows do not name their own."""
    what = source.name or f"{source.format} data"
    if source.format.is_tabular and source.type_name is None:
        raise ConfigError(
            f"{what}: rows of one type need its name", hint="give the type, e.g. node:Person"
        )
    if not source.format.is_tabular and source.type_name is not None:
        raise ConfigError(
            f"{what}: a type is given, but the records name their own",
            hint="leave the type out, or give the format of the rows: csv, parquet or arrow",
        )
    return source
