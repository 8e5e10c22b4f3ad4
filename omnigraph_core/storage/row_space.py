"""Which rows a version of a table has: fragments in scan order come out of its metadata.

Two versions share the rows of a fragment exactly where its state is the same, so what was derived
from one serves the other. Rows are read by fragment, live ones only, in scan order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import ConfigError, InvariantBroken
from omnigraph_core.interruption import pause
from omnigraph_core.storage.blob_columns import plain_rows
from omnigraph_core.storage.translate import LIBRARY_ERRORS, brief, translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from lance.fragment import LanceFragment

    from omnigraph_core.storage.dataset import Table

_BATCH_ROWS: Final = 65_536
"""Rows of a batch: large enough that asking for the next one costs nothing beside its rows."""

_OFFSET_MASK: Final = np.uint64(2**32 - 1)

_BATCH_BYTES: Final = 64 << 20
"""Of a batch, about: an array of texts counts no more than 2 GiB, and rows may be wide."""


@dataclass(frozen=True, slots=True)
class FragmentState:
    """The identity of the rows of one fragment: equal states hold the same live rows in order.

    Equal within one table, that is, and for columns that are stored under the same field ids.
    """

    id: int
    files: tuple[str, ...]
    deletion: str | None
    """Names the file of deleted rows; None if every row lives."""
    rows: int
    """Live ones."""


def fragment_states(table: Table) -> tuple[FragmentState, ...]:
    """The fragments of the version in scan order: reads nothing."""
    return tuple(_state(fragment) for fragment in table.dataset.get_fragments())


def is_extension(old: Sequence[FragmentState], new: Sequence[FragmentState]) -> bool:
    """Whether all rows of the old version are there, first and in the same order."""
    return len(old) <= len(new) and tuple(new[: len(old)]) == tuple(old)


def column_identities(table: Table) -> dict[str, tuple[int, str]]:
    """What tells the content of each column from others in the same files: field id and type.

    A column that was renamed keeps it; one that was dropped and made again does not.
    """
    ids = {field.name(): field.id() for field in table.dataset.lance_schema.fields()}
    return {field.name: (ids[field.name], str(field.type)) for field in table.schema}


def read_fragments(
    table: Table,
    columns: Sequence[str],
    fragment_ids: Sequence[int],
    *,
    where: str | None = None,
    has_addresses: bool = False,
    most_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The live rows of these fragments, one after another in scan order.

    Args:
        where: a filter in Lance's SQL (names in backticks).
        has_addresses: adds the column `lookup.ADDRESS`, last.
        most_rows: stop after so many.

    Raises:
        InvariantBroken: the version has no such fragment.
        ObjectNotFound: the files are gone.
    """
    if not fragment_ids:
        return
    chosen = _fragments(table, fragment_ids)
    blobs = table.blobs_of(columns)
    with translated("reading", table.uri):
        scanner = table.dataset.scanner(
            columns=list(columns),
            filter=where,
            fragments=chosen,
            with_row_address=has_addresses,
            limit=most_rows,
            batch_size=_BATCH_ROWS,
            batch_size_bytes=_BATCH_BYTES,
            blob_handling="all_binary" if blobs else None,
        )
        for batch in scanner.to_batches():
            pause()
            yield plain_rows(batch, blobs)


def check_filter(table: Table, where: str) -> None:
    """Refuse a filter that Lance cannot judge the rows of a table by.

    Raises:
        ConfigError: what is wrong with it.
    """
    try:
        table.dataset.scanner(columns=[], with_row_address=True, filter=where).explain_plan()
    except LIBRARY_ERRORS as problem:
        raise ConfigError(
            f"{where!r} is no filter of `{table.location}`: {brief(problem)}",
            hint="write names in backticks and texts in single quotes",
        ) from problem


def live_offsets(table: Table, fragment_id: int) -> np.ndarray:
    """Where in its fragment each live row is, ascending: reads no more than what was deleted.

    Raises:
        InvariantBroken: the version has no such fragment.
    """
    (fragment,) = _fragments(table, [fragment_id])
    about = fragment.metadata
    if about.deletion_file is None:
        return np.arange(about.physical_rows)
    batches = read_fragments(table, (), [fragment_id], has_addresses=True)
    read = [batch.column(0).to_numpy() & _OFFSET_MASK for batch in batches]
    offsets = np.concatenate([np.zeros(0, np.uint64), *read])
    if len(offsets) != about.num_rows:
        raise InvariantBroken(f"`{table.location}` has as many rows as it says")
    return offsets.astype(np.int64)


def stored_bytes(table: Table) -> int | None:
    """What the files of the version's rows take in the store; None if one does not say."""
    files = [file for item in table.dataset.get_fragments() for file in item.metadata.files]
    sizes = [file.file_size_bytes for file in files]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def iter_addresses(table: Table, where: str | None) -> Iterator[np.ndarray]:
    """Where the rows are that a filter in Lance's SQL holds for, some at a time; all without."""
    with translated("looking up rows", table.uri):
        scanner = table.dataset.scanner(
            columns=[], filter=where, with_row_address=True, batch_size_bytes=_BATCH_BYTES
        )
        for batch in scanner.to_batches():
            pause()
            yield batch.column(0).to_numpy()


def _state(fragment: LanceFragment) -> FragmentState:
    about = fragment.metadata
    deletion = about.deletion_file
    name = None if deletion is None else f"{deletion.read_version}-{deletion.id}"
    # Not `path`, which makes a class of its own each time: that takes longer than all else here.
    files = tuple([file._path for file in about.files])
    return FragmentState(about.id, files, name, about.num_rows)


def _fragments(table: Table, fragment_ids: Sequence[int]) -> list[LanceFragment]:
    wanted = set(fragment_ids)
    chosen = [item for item in table.dataset.get_fragments() if item.fragment_id in wanted]
    if len(chosen) != len(wanted):
        raise InvariantBroken(f"`{table.location}` has every fragment that is read")
    return chosen
