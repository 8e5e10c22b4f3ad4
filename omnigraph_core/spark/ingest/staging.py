"""From files and replaced rows to a staged version of a table.

Rows that go were found partition by partition of keys. An exchange brings those of each fragment
together, where one task writes down that they are gone: no process holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.spark.blocks import Blocks
from omnigraph_core.spark.ingest.inspect import (
    ADDRESSES,
    PART,
    PLACE,
    removed_name,
    replaced_name,
)
from omnigraph_core.storage.fragments import StagedFragments, combine, current_fragments
from omnigraph_core.storage.staged import (
    FileSpans,
    file_spans,
    remove_places,
    stage_append,
    stage_overwrite,
    stage_removed,
)
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.spark.blocks import Received
    from omnigraph_core.spark.ingest.comparing import Comparison
    from omnigraph_core.spark.ingest.model import Job
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table

Gone: TypeAlias = str | tuple[int, np.ndarray]
"""Rows that go: an object that tells of them, or places in a part."""

_OFFSET_BITS: Final = np.uint64(32)
_OFFSETS: Final = np.uint64(2**32 - 1)
_MOST_GROUPS: Final = 1_000
"""Tasks among which the fragments of a table are shared."""


@dataclass(frozen=True, slots=True)
class PartFiles:
    """What a part of the input has written for a table."""

    part: int
    rows: int
    files: str


def stage_table(
    job: Job,
    table: Table,
    table_key: str,
    parts: Sequence[PartFiles],
    comparison: Comparison,
    left_out: Mapping[int, np.ndarray],
    runner: Runner,
) -> UpdateTable | None:
    """The change of one table; None if there is none.

    Args:
        parts: in the order of the input.
        left_out: by part the places of rows that do not stay.
    """
    gone = sum(map(len, left_out.values())) + comparison.replaced(table_key)
    if job.mode is not LoadMode.OVERWRITE and gone == sum(part.rows for part in parts):
        return None
    files = combine(table, [StagedFragments.from_json(part.files) for part in parts])
    if job.mode is LoadMode.OVERWRITE:
        staged, operation = stage_overwrite(table, files), TableOperation.OVERWRITE
    elif job.mode is LoadMode.APPEND or not comparison.removed(table_key):
        staged, operation = stage_append(table, files), TableOperation.APPEND
    else:
        name = removed_name(table_key)
        removal = Removal(job, table.location, table.physical_version, name, _fragments(table))
        left = removal.run(runner, comparison.objects(name), f"replace in {table_key}")
        staged, operation = stage_removed(table, files, *left), TableOperation.UPSERT
    if staged is not None and gone:
        name = replaced_name(table_key)
        removal = Removal(
            job,
            staged.location,
            staged.physical_version,
            name,
            _fragments(staged),
            _starts(parts),
            file_spans(staged, files),
        )
        tasks: list[Gone] = [*comparison.objects(name), *left_out.items()]
        left = removal.run(runner, tasks, f"leave out of {table_key}")
        nothing = replace(files, fragments=(), row_count=0)
        staged = stage_removed(staged, nothing, *left)
    return None if staged is None else UpdateTable.of(table_key, staged, operation)


def _fragments(table: Table) -> np.ndarray:
    return np.array(sorted(fragment.id for fragment in current_fragments(table)), np.uint64)


def _starts(parts: Sequence[PartFiles]) -> dict[int, int]:
    """By part where its rows begin among those of all."""
    starts, total = {}, 0
    for part in parts:
        starts[part.part] = total
        total += part.rows
    return starts


@dataclass(frozen=True, slots=True)
class Removal:
    """Rows of a version that go, some fragments in each task."""

    job: Job
    location: str
    physical_version: int
    name: str
    """Of the tables, in objects that partitions left, that tell of the rows."""
    fragments: np.ndarray
    """The ids of all fragments, ascending."""
    starts: Mapping[int, int] | None = None
    """By part where its rows begin; None: the tables have addresses, not parts and places."""
    spans: FileSpans | None = None

    def run(
        self, runner: Runner, tasks: Sequence[Gone], job_name: str
    ) -> tuple[list[str], list[int]]:
        """The fragments that lose rows as they are afterwards, and the ids of those left empty."""
        found = runner.exchange(self.emit, tasks, self.meet, len(self._firsts), name=job_name)
        left = [one for group in found for one in group]
        updated = [text for _, text in left if text is not None]
        return updated, [fragment for fragment, text in left if text is None]

    @property
    def _firsts(self) -> np.ndarray:
        """The first fragments of the groups that one task each looks at."""
        return self.fragments[:: -(-len(self.fragments) // _MOST_GROUPS)]

    def emit(self, task: Gone) -> Iterator[Blocks]:
        """The addresses of an object, or of places in a part, by group of fragments."""
        addresses = np.sort(self._addresses(task))
        ends = np.searchsorted(addresses >> _OFFSET_BITS, self._firsts)
        ends = np.append(ends, len(addresses)) * addresses.itemsize
        yield Blocks(0, ends, addresses)

    def _addresses(self, task: Gone) -> np.ndarray:
        if isinstance(task, str):
            rows = self.job.scratch.read_tables(task)[self.name]
            if self.starts is None:
                addresses: np.ndarray = rows.column(ADDRESSES).to_numpy()
                return addresses
            parts, places = rows.column(PART).to_numpy(), rows.column(PLACE).to_numpy()
        else:
            places = task[1]
            parts = np.full(len(places), task[0])
        assert self.starts is not None
        assert self.spans is not None
        known, at = np.unique(parts, return_inverse=True)
        starts = np.array([self.starts[part] for part in known.tolist()], np.int64)
        return self.spans.addresses(starts[at] + places.astype(np.int64))

    def meet(self, partition: int, received: Received) -> list[tuple[int, str | None]]:
        """Fragments after their rows are gone, as text; None if none is left."""
        found = np.unique(
            np.concatenate([np.frombuffer(block, np.uint64) for _, block in received[0]])
        )
        table = self.job.open_at(self.location, self.physical_version)
        fragments, starts = np.unique(found >> _OFFSET_BITS, return_index=True)
        places = np.split(found & _OFFSETS, starts[1:])
        return [
            (fragment, remove_places(table, fragment, pa.array(gone)))
            for fragment, gone in zip(fragments.tolist(), places, strict=True)
        ]
