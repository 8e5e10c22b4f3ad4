"""What the parts of one job leave for each other: `_scratch/<job>/<name>`, gone when the job ends.

Names are never used twice, so a part that is done again disturbs nobody. What a killed job leaves,
cleanup removes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from struct import Struct
from typing import IO, TYPE_CHECKING, Final

import obstore
import pyarrow as pa

from omnigraph_core.ids import new_ulid
from omnigraph_core.storage.objects import StoredObject, delete_all, list_objects
from omnigraph_core.storage.sweep import delete_files
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.storage.session import Store

SCRATCH: Final = "_scratch"
_LENGTH: Final = Struct("<Q")


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch objects of one job, in the store of the graph it works on."""

    store: Store
    job: str

    def put(self, kind: str, content: bytes | IO[bytes]) -> str:
        """Keep bytes; the name to ask for them by."""
        name = f"{kind}-{new_ulid()}"
        path = self._path(name)
        with translated("writing", self.store.uri(path)):
            obstore.put(self.store.objects, path, content)
        return name

    def read(self, name: str, start: int, end: int) -> memoryview:
        """Some of the bytes of an object."""
        path = self._path(name)
        with translated("reading", self.store.uri(path)):
            return memoryview(obstore.get_range(self.store.objects, path, start=start, end=end))

    def read_whole(self, name: str) -> memoryview:
        """All bytes of an object."""
        path = self._path(name)
        with translated("reading", self.store.uri(path)):
            return memoryview(obstore.get(self.store.objects, path).bytes())

    def put_tables(self, kind: str, tables: Mapping[str, pa.Table]) -> str:
        """Keep tables by name, in one object. Those without rows are left out."""
        packed = {name: _packed(rows) for name, rows in tables.items() if rows.num_rows}
        header = json.dumps([[name, content.size] for name, content in packed.items()]).encode()
        return self.put(kind, b"".join([_LENGTH.pack(len(header)), header, *packed.values()]))

    def read_tables(self, name: str) -> dict[str, pa.Table]:
        """What `put_tables` kept."""
        content = self.read_whole(name)
        (length,) = _LENGTH.unpack_from(content)
        at = _LENGTH.size + length
        tables = {}
        for table, size in json.loads(bytes(content[_LENGTH.size : at])):
            tables[table] = pa.ipc.open_stream(pa.py_buffer(content[at : at + size])).read_all()
            at += size
        return tables

    def address(self, name: str) -> tuple[str, str]:
        """The store's address and the path of an object below it, for readers elsewhere."""
        return self.store.root.text, self._path(name)

    def names(self, kind: str) -> list[str]:
        """The names of objects whose kind begins so: one listing."""
        found = list_objects(self.store, f"{SCRATCH}/{self.job}")
        names = (item.path.rpartition("/")[2] for item in found)
        return [name for name in names if name.startswith(kind)]

    def remove(self, names: Sequence[str]) -> None:
        """Remove some objects; what is gone already counts as removed."""
        delete_all(self.store, [self._path(name) for name in names])

    def clear(self) -> None:
        """Remove everything the job has left here."""
        prefix = f"{SCRATCH}/{self.job}"
        delete_all(self.store, [item.path for item in list_objects(self.store, prefix)])

    def _path(self, name: str) -> str:
        return f"{SCRATCH}/{self.job}/{name}"


def _packed(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def list_scratch(store: Store) -> tuple[StoredObject, ...]:
    """What all jobs have left: one listing."""
    return list_objects(store, SCRATCH)


def remove_scratch(store: Store, left: Sequence[StoredObject]) -> None:
    """Remove what ended jobs have left."""
    start = len(SCRATCH) + 1
    delete_files(store, SCRATCH, [item.path[start:] for item in left])
