"""Committed rows that a load replaces: addresses by bucket come in, fragments without them go out.

The places are kept beside the graph, so that no process holds them all: each fragment is dealt with
by one task, which reads what all buckets have found in it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph_core.storage.staged import remove_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.spark.ingest.model import Job
    from omnigraph_core.storage.scratch import Scratch

_OFFSET_BITS: Final = np.uint64(32)
_PLACE: Final = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Places:
    """Places of rows in one fragment: so many, from this byte of an object on."""

    fragment: int
    object: str
    start: int
    count: int


Removed: TypeAlias = tuple[Places, ...]
"""Of one table."""


@dataclass(frozen=True, slots=True)
class FragmentTask:
    """A fragment that loses rows."""

    table_key: str
    location: str
    physical_version: int
    fragment: int
    places: tuple[Places, ...]


def put_removed(scratch: Scratch, addresses: Mapping[str, pa.ChunkedArray]) -> dict[str, Removed]:
    """Keep the places of rows that go; by table key, where they are kept."""
    arrays, spans, at = [], [], 0
    for key, found in addresses.items():
        for fragment, places in _by_fragment(found):
            spans.append((key, fragment, at, len(places)))
            arrays.append(places)
            at += places.nbytes
    if not arrays:
        return {}
    name = scratch.put("removed", b"".join(array.tobytes() for array in arrays))
    kept: dict[str, list[Places]] = defaultdict(list)
    for key, fragment, start, count in spans:
        kept[key].append(Places(fragment, name, start, count))
    return {key: tuple(places) for key, places in kept.items()}


def fragment_tasks(
    removed: Mapping[str, Iterable[Places]], versions: Mapping[str, tuple[str, int]]
) -> tuple[FragmentTask, ...]:
    """One task for each fragment that loses rows."""
    return tuple(
        FragmentTask(key, *versions[key], fragment, tuple(places))
        for key, found in sorted(removed.items())
        for fragment, places in sorted(_grouped(found).items())
    )


def remove_from_fragment(job: Job, task: FragmentTask) -> str | None:
    """The fragment after its rows are gone, as text; None if none is left."""
    size = _PLACE.itemsize
    parts = [
        np.frombuffer(job.scratch.read(p.object, p.start, p.start + p.count * size), _PLACE)
        for p in task.places
    ]
    places = pa.array(np.concatenate(parts).astype(np.uint64))
    table = job.open_at(task.location, task.physical_version)
    return remove_places(table, task.fragment, places)


def _by_fragment(addresses: pa.ChunkedArray) -> Iterable[tuple[int, np.ndarray]]:
    numbers = np.unique(addresses.to_numpy())
    fragments = numbers >> _OFFSET_BITS
    starts = np.flatnonzero(np.diff(fragments, prepend=fragments[:1] - np.uint64(1)))
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield int(fragments[start]), numbers[start:end].astype(_PLACE)


def _grouped(found: Iterable[Places]) -> dict[int, list[Places]]:
    by_fragment: dict[int, list[Places]] = defaultdict(list)
    for places in found:
        by_fragment[places.fragment].append(places)
    return by_fragment
