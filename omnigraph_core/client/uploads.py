"""Data on its way to a server: sources come in, the body of a request goes out in portions.

Records without a name are sent as they are; files go as parts of one body, under names that tell
what is in them. A body can be made again for another try. Compressed text stays compressed.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from omnigraph_core.ids import new_ulid
from omnigraph_core.storage.inputs import ObjectFile
from omnigraph_core.write.slices import LineSlice, RowGroups
from omnigraph_core.write.sources import Format, Spool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.write.sources import Source

AS_JOB: Final = 8 * 2**20
"""Bytes from which on data is loaded as a job."""
_PORTION: Final = 2**18
_FIRST: Final = re.compile(r"^input 1(?:, |: )", re.MULTILINE)
"""How a place in the first of several nameless sources begins."""
_FOLDERS: Final = {"node": "nodes/", "edge": "edges/"}


@dataclass(frozen=True, slots=True)
class Upload:
    """What is sent: where to, with which parameters, and which body."""

    path: str
    parameters: dict[str, object]
    headers: dict[str, str]
    size: int
    """Bytes of the data, about."""
    names: dict[str, str]
    """What the server calls a file, and what the caller does, where these differ."""
    _sources: tuple[Source, ...]
    _parts: tuple[str, ...]
    _boundary: str

    @property
    def _is_nameless(self) -> bool:
        """Whether there is one source, which needs no name to be told from others."""
        return len(self._sources) == 1 and self._sources[0].name is None

    @property
    def _named(self) -> re.Pattern[str]:
        """Any of the names, where it is not part of another one."""
        either = "|".join(map(re.escape, self.names)) or r"(?!)"
        return re.compile(rf"(?<![\w./-])(?:{either})(?![\w.-])")

    @property
    def is_long(self) -> bool:
        """Whether it may take too long for one request."""
        return self.size > AS_JOB or len(self._sources) > 1

    def content(self) -> Iterator[bytes]:
        """The body, in portions."""
        if not self._parts:
            yield from _portions(self._sources[0])
            return
        for source, part in zip(self._sources, self._parts, strict=True):
            head = f'Content-Disposition: form-data; name="file"; filename="{_quoted(part)}"'
            yield f"--{self._boundary}\r\n{head}\r\n\r\n".encode()
            yield from _portions(source)
            yield b"\r\n"
        yield f"--{self._boundary}--\r\n".encode()

    def check_rejects(self, path: Path) -> None:
        """
        Raises:
            ConfigError: the file for rejected records is an input.
        """
        from omnigraph_core.write.rejects import check_rejects  # loads the storage

        check_rejects(path, self._sources)

    def renamed(self, value: Any) -> Any:
        """A document in which files are called as the caller calls them."""
        if isinstance(value, str):
            value = _FIRST.sub("", value) if self._is_nameless else value
            return self._named.sub(lambda found: self.names[found[0]], value)
        if isinstance(value, dict):
            nameless = {"file"} if self._is_nameless else set()
            return {k: self.renamed(item) for k, item in value.items() if k not in nameless}
        return [self.renamed(item) for item in value] if isinstance(value, list) else value


def plan_upload(sources: tuple[Source, ...]) -> Upload:
    """How to send sources."""
    size = sum(_size(source) for source in sources)
    only = sources[0] if len(sources) == 1 else None
    if only is not None and only.format is Format.JSONL and only.name is None:
        headers = {"Content-Type": "application/x-ndjson"}
        return Upload("/load/ndjson", {}, headers, size, {}, sources, (), "")
    boundary = f"omnigraph-{new_ulid()}"
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    shared = _shared(sources)
    parts = _part_names(sources, is_shared=bool(shared))
    names = _called(sources, parts)
    return Upload("/load/files", shared, headers, size, names, sources, parts, boundary)


def _shared(sources: Sequence[Source]) -> dict[str, object]:
    """The format and type of all sources, if they have the same."""
    kinds = {(source.format, source.type_name) for source in sources}
    if len(kinds) > 1:
        return {}
    ((format, type_name),) = kinds
    return {"format": str(format), "type": type_name}


def _part_names(sources: Sequence[Source], *, is_shared: bool) -> tuple[str, ...]:
    """What to call files. Those of several directories get a number if they have one name.

    The name of a table among files of other kinds stays: it tells the type of the rows.
    """
    names: list[str] = []
    taken: set[str] = set()
    for number, source in enumerate(sources, 1):
        name = _own_name(source, number) if is_shared else _telling_name(source, number)
        if name in taken and (is_shared or source.type_name is None):
            name = f"{number}-{name}"
        names.append(name)
        taken.add(name)
    return tuple(names)


def _own_name(source: Source, number: int) -> str:
    return f"input {number}" if source.name is None else PurePath(source.name).name


def _telling_name(source: Source, number: int) -> str:
    """A name by which format and type of a file are known among others."""
    if source.type_name is None:
        stem = PurePath(source.name or f"input-{number}").name.partition(".")[0]
        return f"{stem}.{source.format}"
    kind, _, bare = source.type_name.rpartition(":")
    return f"{_FOLDERS.get(kind, '')}{bare}.{source.format}"


def _called(sources: Sequence[Source], parts: Sequence[str]) -> dict[str, str]:
    shown = [PurePath(part).name for part in parts]
    counts = Counter(shown)
    return {
        name: source.name
        for source, name in zip(sources, shown, strict=True)
        if source.name is not None and name != source.name and counts[name] == 1
    }


def _quoted(name: str) -> str:
    """
    >>> _quoted('a "b".jsonl')
    'a %22b%22.jsonl'
    """
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").replace("\\", "/")


def _portions(source: Source) -> Iterator[bytes]:
    if isinstance(source.data, pa.Table):
        yield from _arrow(source.data)
        return
    with _opened(source) as file:
        while data := file.read(_PORTION):
            yield data


def _opened(source: Source) -> IO[bytes]:
    if isinstance(source.data, Path):
        return source.data.open("rb")  # as it lies there: the server unpacks it
    return source.open()


def _arrow(table: pa.Table) -> Iterator[bytes]:
    """A table as a stream, batch by batch."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        for batch in table.to_batches():
            stream.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


def _size(source: Source) -> int:
    data = source.data
    if isinstance(data, pa.Table):
        return int(data.nbytes)
    if isinstance(data, bytes):
        return len(data)
    if isinstance(data, Path | ObjectFile | LineSlice | RowGroups):
        return source.size
    stream = data.file if isinstance(data, Spool) else data
    return cast("int", stream.seek(0, os.SEEK_END)) - source.start
