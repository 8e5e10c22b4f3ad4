"""Row operations on a table: append, replace, delete, overwrite.

A table at its pinned version comes in; the table after the operation goes out, or None where the
operation would change nothing. Each is one detached version, invisible until a catalog names it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.detached import try_stage
from omnigraph_core.storage.fragments import (
    StagedFragments,
    current_fragments,
    unstaged,
    write_append,
)
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.runs import distinct
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.detached import Operation
    from omnigraph_core.storage.rows import Rows

_OFFSET_BITS: Final = 32
"""A row address is the fragment's id above, the row's place in the fragment below these bits."""


def stage_append(table: Table, data: Rows | StagedFragments) -> Table | None:
    """Add rows, or rows whose files are written already; None when there are none.

    Raises:
        RecordError: the rows do not fit the table's columns.
        PreconditionFailed: the files were written for other columns than the table has now.
    """

    def prepare() -> Operation | None:
        fragments = _written(table, data)
        return LanceOperation.Append(fragments) if fragments else None

    return try_stage(_dated(table, data), "appending", prepare)


def stage_replace(
    table: Table, data: Rows | StagedFragments, replaced: pa.Array | pa.ChunkedArray
) -> Table | None:
    """Put rows in the place of those at these addresses; None when there are neither.

    Raises:
        RecordError: the rows do not fit the table's columns.
        PreconditionFailed: the files were written for other columns than the table has now.
        InvariantBroken: there is no row at one of the addresses.
    """

    def prepare() -> Operation | None:
        fragments = _written(table, data)
        if not len(replaced):
            return LanceOperation.Append(fragments) if fragments else None
        updated, emptied = _without(table, replaced)
        return LanceOperation.Update(
            removed_fragment_ids=emptied, updated_fragments=updated, new_fragments=fragments
        )

    return try_stage(_dated(table, data), "replacing rows", prepare)


def remove_places(table: Table, fragment_id: int, places: pa.Array) -> str | None:
    """Write down that rows of a fragment are gone; the fragment after that as text, None if it is
    left empty. Any process may do that for a fragment, one stages the result.

    Raises:
        InvariantBroken: there is no row at one of the places.
    """
    first = pa.scalar(fragment_id << _OFFSET_BITS, pa.uint64())
    updated, _ = _without(table, pc.add(first, places))
    return json.dumps(updated[0].to_json()) if updated else None


def remove_rows(table: Table, addresses: pa.Array | pa.ChunkedArray) -> tuple[list[str], list[int]]:
    """Remove rows of any fragments: those that lose some, as text, and the ids of those left empty.

    Raises:
        InvariantBroken: there is no row at one of the addresses.
    """
    updated, emptied = _without(table, addresses)
    return [json.dumps(fragment.to_json()) for fragment in updated], emptied


def stage_removed(
    table: Table, data: StagedFragments, updated: Sequence[str], emptied: Sequence[int]
) -> Table | None:
    """Add rows whose files are written, and take the fragments as `remove_places` left them.

    Raises:
        PreconditionFailed: the files were written for other columns than the table has now.
    """

    def prepare() -> Operation | None:
        fragments = unstaged(table, data)
        with translated("reading staged fragments", table.uri):
            changed = [FragmentMetadata.from_json(text) for text in updated]
        if not changed and not emptied:
            return LanceOperation.Append(fragments) if fragments else None
        return LanceOperation.Update(
            removed_fragment_ids=list(emptied), updated_fragments=changed, new_fragments=fragments
        )

    return try_stage(_dated(table, data), "replacing rows", prepare)


@dataclass(frozen=True, slots=True)
class FileSpans:
    """Where the rows of some files are in a table that holds them."""

    starts: np.ndarray
    """How many rows come before each file."""
    fragments: np.ndarray

    def addresses(self, places: np.ndarray) -> np.ndarray:
        """The addresses of rows by where they are in all files, from the first row of the first."""
        which = np.searchsorted(self.starts, places, side="right") - 1
        offsets = (places - self.starts[which]).astype(np.uint64)
        found: np.ndarray = (self.fragments[which] << np.uint64(_OFFSET_BITS)) | offsets
        return found


def file_spans(table: Table, data: StagedFragments) -> FileSpans:
    """Where the rows of these files are in a table that holds them."""
    ids = {_files(fragment): fragment.id for fragment in current_fragments(table)}
    with translated("reading staged fragments", table.uri):
        written = [FragmentMetadata.from_json(text) for text in data.fragments]
    starts = np.cumsum([0, *(fragment.physical_rows for fragment in written)])[:-1]
    return FileSpans(starts, np.array([ids[_files(one)] for one in written], np.uint64))


def stage_delete_addresses(table: Table, addresses: pa.Array | pa.ChunkedArray) -> Table | None:
    """Remove the rows at these addresses; None when none is given.

    Raises:
        InvariantBroken: there is no row at one of the addresses.
    """

    def prepare() -> Operation | None:
        updated, emptied = _without(table, addresses)
        return LanceOperation.Delete(updated, emptied, ADDRESS)

    return try_stage(table, "deleting", prepare) if len(addresses) else None


def stage_overwrite(table: Table, data: Rows | StagedFragments) -> Table | None:
    """Replace every row; None when the table was empty and stays so.

    Columns keep their field ids and indexes their definitions: files written for an earlier version
    still fit. A Lance overwrite would number the fields from 0 again.

    Raises:
        RecordError: the rows do not fit the table's columns.
        PreconditionFailed: the files were written for other columns than the table has now.
    """

    def prepare() -> Operation | None:
        replaced = [fragment.id for fragment in current_fragments(table)]
        fragments = _written(table, data)
        if not replaced and not fragments:
            return None
        return LanceOperation.Update(removed_fragment_ids=replaced, new_fragments=fragments)

    return try_stage(_dated(table, data), "overwriting", prepare)


def _dated(table: Table, data: Rows | StagedFragments) -> Table:
    return table.since(data.begun_at) if isinstance(data, StagedFragments) else table


def _written(table: Table, data: Rows | StagedFragments) -> list[FragmentMetadata]:
    staged = data if isinstance(data, StagedFragments) else write_append(table, data)
    return unstaged(table, staged)


def _without(
    table: Table, addresses: pa.Array | pa.ChunkedArray
) -> tuple[list[FragmentMetadata], list[int]]:
    """The fragments that lose rows as they are afterwards, and the ids of those left empty."""
    gone = _by_fragment(addresses)
    updated, emptied = [], []
    with translated("deleting rows", table.uri):
        for fragment in table.dataset.get_fragments():
            offsets = gone.pop(fragment.fragment_id, None)
            if offsets is None:
                continue
            left = fragment.delete_rows(offsets)
            kept = 0 if left is None else left.num_rows
            if fragment.metadata.num_rows - kept != len(offsets):
                raise _not_there(table)
            if left is None:
                emptied.append(fragment.fragment_id)
            else:
                updated.append(left)
    if gone:
        raise _not_there(table)
    return updated, emptied


def _not_there(table: Table) -> InvariantBroken:
    return InvariantBroken(f"`{table.location}` has a row at every address that is deleted")


def _by_fragment(addresses: pa.Array | pa.ChunkedArray) -> dict[int, np.ndarray]:
    once = distinct(np.asarray(addresses, np.uint64))
    fragments, starts = np.unique(once >> np.uint64(_OFFSET_BITS), return_index=True)
    ends = np.append(starts, len(once))[1:]
    offsets = once & np.uint64(2**_OFFSET_BITS - 1)
    return {
        fragment: offsets[start:end]
        for fragment, start, end in zip(fragments.tolist(), starts, ends, strict=True)
    }


def _files(fragment: FragmentMetadata) -> tuple[str, ...]:
    return tuple(file.path for file in fragment.files)
