"""A table's files against what its version says of them: a listing comes in, problems go out.

Sizes are compared, and of rows it is read where their blobs are; whether an index tells what the
column does is looked at for a few values, with one pass over the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.indexes import index_coverage
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.segments import SegmentKind
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance.fragment import FragmentMetadata, LanceFragment

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.sweep import TableFile

_SAMPLED: Final = 16
"""Rows whose values are looked up in an index."""

_LOOKED_UP: Final = frozenset({SegmentKind.BTREE, SegmentKind.BITMAP})
"""Kinds of indexes that are asked for values."""

_BATCH_ROWS: Final = 65_536

_SHARED_FILE: Final = 1
"""What Lance calls the kind of a blob that is in a file with others."""

_OWN_FILE: Final = 2
"""The same for a blob that has a file of its own."""


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file, or all of an index segment, that a version reaches.

    `size` is None if unknown; with `is_least` the file may be longer.
    """

    unit: str
    size: int | None
    is_least: bool = False

    @property
    def is_index(self) -> bool:
        return self.unit.startswith("_indices/")


def expected_files(table: Table) -> tuple[ExpectedFile, ...]:
    """Data, deletions and index segments of the table's version: reads its metadata only."""
    return (*_row_files(table), *_segments(table))


def found_sizes(listed: Iterable[TableFile]) -> dict[str, int]:
    """Bytes by path, and those of whole index segments."""
    sizes: dict[str, int] = {}
    for file in listed:
        unit = file.unit if file.path.startswith("_indices/") else file.path
        sizes[unit] = sizes.get(unit, 0) + file.size
    return sizes


def is_wrong_size(expected: ExpectedFile, sizes: Mapping[str, int]) -> bool:
    """Whether a file that is there is not as long as it was written; none is ever empty."""
    found = sizes[expected.unit]
    if expected.size is None:
        return found == 0
    return found < expected.size if expected.is_least else found != expected.size


class BlobFiles:
    """The files that blobs of one table are in, for any of its versions, as their rows say.

    Reads where blobs are, none of their bytes, and that once for what versions share.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[_Holder, tuple[ExpectedFile, ...]] = {}

    def of(self, table: Table) -> tuple[ExpectedFile, ...]:
        """
        Raises:
            StorageError: rows cannot be read.
        """
        needed: dict[str, ExpectedFile] = {}
        for column, field_id in _blob_fields(table):
            for file in self._of_column(table, column, field_id):
                other = needed.get(file.unit, file)
                needed[file.unit] = max(file, other, key=lambda item: item.size or 0)
        return tuple(needed.values())

    def _of_column(self, table: Table, column: str, field_id: int) -> Iterator[ExpectedFile]:
        holders: dict[int, _Holder] = {}
        fresh: list[LanceFragment] = []
        for fragment in table.dataset.get_fragments():
            holder = _holder(fragment.metadata, field_id)
            if holder is not None:
                holders[fragment.fragment_id] = holder
                if holder not in self._known:
                    fresh.append(fragment)
        if fresh:
            found = _described(table, column, fresh)
            for fragment in fresh:
                holder = holders[fragment.fragment_id]
                self._known[holder] = tuple(_blob_files(holder, found, fragment.fragment_id))
        for holder in holders.values():
            yield from self._known[holder]


def index_problems(table: Table) -> Iterator[tuple[str, str]]:
    """Indexes that contradict their table, by name: reads metadata only."""
    present = {fragment.id for fragment in current_fragments(table)}
    with translated("reading the indexes", table.uri):
        descriptions = table.dataset.describe_indices()
    for description in descriptions:
        for name in description.field_names:
            if name not in table.schema.names:
                yield description.name, f"it is on the column `{name}`, which is not there"
        covered: set[int] = set()
        for segment in description.segments:
            own = set(segment.fragment_ids) & present
            if own & covered:
                twice = sorted(own & covered)
                yield description.name, f"two of its segments cover the fragments {twice}"
            covered |= own


def lookup_problems(table: Table) -> Iterator[tuple[str, str]]:
    """Indexes that do not find the rows that reading the column finds, by name.

    Raises:
        StorageError: rows or an index cannot be read.
    """
    for coverage in index_coverage(table):
        if coverage.kind in _LOOKED_UP and coverage.indexed_fragments:
            column = coverage.columns[0]
            values = _sample(table, column)
            if len(values) and (problem := _compared(table, column, values)):
                yield coverage.name, problem


def _row_files(table: Table) -> Iterator[ExpectedFile]:
    for fragment in current_fragments(table):
        for file in fragment.files:
            yield ExpectedFile(f"data/{file.path}", file.file_size_bytes)
        for overlay in fragment.overlays:
            yield ExpectedFile(f"data/{overlay.data_file.path}", overlay.data_file.file_size_bytes)
        if fragment.deletion_file is not None:
            yield ExpectedFile(fragment.deletion_file.path(fragment.id), None)


@dataclass(frozen=True, slots=True)
class _Holder:
    """A column of a fragment: its data file and field there, and which rows are deleted."""

    data_file: str
    field_id: int
    deletions: str | None


def _blob_fields(table: Table) -> Iterator[tuple[str, int]]:
    blobs = table.blobs_of()
    for field in table.dataset.lance_schema.fields():
        if field.name() in blobs:
            yield field.name(), field.id()


def _holder(fragment: FragmentMetadata, field_id: int) -> _Holder | None:
    """None where the column is null for all rows: no file has it."""
    deleted = fragment.deletion_file
    for file in fragment.files:
        if field_id in file.fields:
            deletions = None if deleted is None else deleted.path(fragment.id)
            return _Holder(file.path, field_id, deletions)
    return None


def _described(table: Table, column: str, fragments: Sequence[LanceFragment]) -> np.ndarray:
    """The files of blobs of the rows, ascending: fragment, number, kind, bytes at least."""
    found = [np.empty((0, 4), np.int64)]
    with translated("reading where blobs are", table.uri):
        scanner = table.dataset.scanner(
            columns=[column],
            fragments=list(fragments),
            with_row_address=True,
            batch_size=_BATCH_ROWS,
            blob_handling="blobs_descriptions",
        )
        for batch in scanner.to_batches():
            found.append(_longest(_places(batch, column)))
    return _longest(np.concatenate(found))


def _places(batch: pa.RecordBatch, column: str) -> np.ndarray:
    blobs = pc.struct_field(batch.column(column), "kind")
    kinds = pa.array([_SHARED_FILE, _OWN_FILE], blobs.type)
    rows = batch.filter(pc.is_in(blobs, value_set=kinds))

    def member(name: str) -> np.ndarray:
        values: np.ndarray = pc.struct_field(rows.column(column), name).to_numpy()
        return values.astype(np.int64)

    fragments = (rows.column(ADDRESS).to_numpy() >> np.uint64(32)).astype(np.int64)
    ends = member("position") + member("size")
    return np.column_stack([fragments, member("blob_id"), member("kind"), ends])


def _longest(places: np.ndarray) -> np.ndarray:
    """Of each file the place that ends last."""
    ordered = places[np.lexsort(places.T[::-1])]
    is_last = np.ones(len(ordered), np.bool_)
    is_last[:-1] = (ordered[1:, :3] != ordered[:-1, :3]).any(axis=1)
    return ordered[is_last]


def _blob_files(holder: _Holder, found: np.ndarray, fragment_id: int) -> Iterator[ExpectedFile]:
    start, end = np.searchsorted(found[:, 0], [fragment_id, fragment_id + 1])
    folder = f"data/{holder.data_file.removesuffix('.lance')}"
    for _, number, kind, size in found[start:end].tolist():
        # Lance names them by the bits of their number, the lowest first.
        name = f"{number:032b}"[::-1]
        yield ExpectedFile(f"{folder}/{name}.blob", size, is_least=kind == _SHARED_FILE)


def _segments(table: Table) -> Iterator[ExpectedFile]:
    with translated("reading the indexes", table.uri):
        descriptions = table.dataset.describe_indices()
    for description in descriptions:
        for segment in description.segments:
            yield ExpectedFile(f"_indices/{segment.uuid}", segment.size_bytes)


def _sample(table: Table, column: str) -> pa.Array:
    """A few values, from all over the table."""
    count = table.count_rows()
    if not count:
        return pa.array([], table.schema.field(column).type)
    rows = np.unique(np.linspace(0, count - 1, min(count, _SAMPLED)).astype(np.int64))
    with translated("reading rows", table.uri):
        taken = table.dataset.take(rows.tolist(), columns=[column]).column(column)
    values = pc.unique(pc.drop_null(taken))
    if pa.types.is_floating(values.type):
        # Two zeros are one value to a lookup, and what is not a number equals nothing.
        values = values.filter(pc.and_(pc.is_finite(values), pc.not_equal(values, 0)))
    return values


def _compared(table: Table, column: str, values: pa.Array) -> str | None:
    expected = _scanned(table, column, values)
    found = find_rows(table, column, values, (), has_addresses=True).column(ADDRESS).to_numpy()
    if np.array_equal(np.sort(found), expected):
        return None
    return (
        f"looking {len(values)} values of `{column}` up finds {len(found)} rows, "
        f"reading the column {len(expected)}"
    )


def _scanned(table: Table, column: str, values: pa.Array) -> np.ndarray:
    """The ascending addresses of the rows that have one of the values."""
    found = [np.empty(0, np.uint64)]
    with translated("reading", table.uri):
        scanner = table.scanner([column], has_addresses=True, batch_rows=_BATCH_ROWS)
        for batch in scanner.to_batches():
            hits = pc.is_in(batch.column(column), value_set=values)
            found.append(batch.column(ADDRESS).filter(hits).to_numpy())
    return np.sort(np.concatenate(found))
