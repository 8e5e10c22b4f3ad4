"""Batches that were submitted to a provider and not collected yet, recorded beside the graph.

`_scratch/batches-<branch>/planned-<label>` says what a batch covers and is written before the batch
is submitted; `submitted-<label>-<id>` says its name at the provider and is written right after. A
backfill that starts again finds both. One that was killed in between finds the batch by its label.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import ObjectNotFound
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.write.paid_vectors import KEY_BYTES, pack_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.storage.session import Store

_log = logging.getLogger(__name__)

_KIND: Final = "batches"
_PLANNED: Final = "planned"
_SUBMITTED: Final = "submitted"
_LENGTH: Final = Struct("<Q")


def scratch_of_batch(path: str) -> tuple[str, ...]:
    """The scratch directories that are needed because of the record at a path, if it is one.

    >>> scratch_of_batch("_scratch/batches-01J/planned-01K")
    ('batches-01J', 'vectors-01J')
    """
    job = path.split("/")[1]
    if not job.startswith(f"{_KIND}-"):
        return ()
    return job, f"vectors-{job.removeprefix(f'{_KIND}-')}"


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A batch, and where its record is."""

    label: str
    """What the provider knows it by besides its own name for it."""
    base_url: str
    model: str
    dimension: int
    count: int
    """Texts it covers."""
    file: str
    """The file of its requests at the provider."""
    batch_id: str | None
    """None: it was about to be submitted."""
    names: tuple[str, ...]
    """The objects of the record."""


class BatchRecords:
    """The records of all backfills of a branch."""

    def __init__(self, store: Store, incarnation: str) -> None:
        self._objects = Scratch(store, f"{_KIND}-{incarnation}")

    def add_planned(
        self, base_url: str, ask: Ask, keys: Sequence[bytes], *, file: str
    ) -> BatchRecord:
        """Record a batch that is about to be submitted."""
        facts = {
            "base_url": base_url,
            "model": ask.model,
            "dimension": ask.dimension,
            "count": len(keys),
            "file": file,
        }
        header = json.dumps(facts).encode()
        packed = pack_keys(keys).tobytes()
        name = self._objects.put(_PLANNED, b"".join([_LENGTH.pack(len(header)), header, packed]))
        return _record(name, facts)

    def mark_submitted(self, record: BatchRecord, batch_id: str) -> BatchRecord:
        """Record the provider's name of a batch."""
        content = json.dumps({"batch_id": batch_id}).encode()
        name = self._objects.put(f"{_SUBMITTED}-{record.label}", content)
        return replace(record, batch_id=batch_id, names=(*record.names, name))

    def read_all(self, base_url: str) -> list[BatchRecord]:
        """The records of batches at an address, oldest first."""
        names = self._objects.names("")
        submitted: dict[str, list[str]] = {}
        for name in names:
            if name.startswith(_SUBMITTED):
                submitted.setdefault(name.split("-")[1], []).append(name)
        found = []
        for name in sorted(names):
            if not name.startswith(_PLANNED):
                continue
            record = self._read(name, submitted.get(name.split("-")[1], []))
            if record is None:
                continue
            if record.base_url == base_url:
                found.append(record)
            else:
                _log.warning(
                    "batch %s of %d texts is left for a backfill that asks %s",
                    record.batch_id,
                    record.count,
                    record.base_url,
                )
        return found

    def read_keys(self, record: BatchRecord) -> np.ndarray:
        """The keys of the texts a batch covers, two numbers each; none if another backfill has
        collected it."""
        try:
            content = self._objects.read_whole(record.names[0])
        except ObjectNotFound:
            content = memoryview(b"")
        keys = content[max(0, len(content) - record.count * KEY_BYTES) :]
        return np.frombuffer(keys, np.uint64).reshape(-1, 2)

    def exists(self, record: BatchRecord) -> bool:
        return record.names[0] in self._objects.names(_PLANNED)

    def remove(self, record: BatchRecord) -> None:
        # What was planned goes first: alone, it would have the batch collected again.
        for name in record.names:
            self._objects.remove([name])

    def uri(self, record: BatchRecord) -> str:
        """Where the record is, for messages."""
        return self._objects.store.uri(self._objects.address(record.names[0])[1])

    def _read(self, name: str, submitted: Sequence[str]) -> BatchRecord | None:
        try:
            (length,) = _LENGTH.unpack(self._objects.read(name, 0, _LENGTH.size))
            header = self._objects.read(name, _LENGTH.size, _LENGTH.size + length)
            record = _record(name, json.loads(bytes(header)))
            for other in submitted:
                given = json.loads(bytes(self._objects.read_whole(other)))
                names = (*record.names, other)
                record = replace(record, batch_id=given["batch_id"], names=names)
        except ObjectNotFound:  # another backfill has collected it
            return None
        return record


def _record(name: str, facts: dict[str, object]) -> BatchRecord:
    return BatchRecord(
        name.split("-")[1],
        str(facts["base_url"]),
        str(facts["model"]),
        int(str(facts["dimension"])),
        int(str(facts["count"])),
        str(facts["file"]),
        None,
        (name,),
    )
