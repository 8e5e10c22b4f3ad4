"""Data files without a version: rows come in, a description of the written files goes out.

Any process may write, one commits: the description is small, plain JSON, and says which layout the
files were written with, so they never end up in a table whose columns mean something else.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph_core.errors import PreconditionFailed
from omnigraph_core.job_report import count_written
from omnigraph_core.storage.rows import AlignedReader, check_columns
from omnigraph_core.storage.translate import LIBRARY_ERRORS, translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance.lance.schema import LanceField

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.rows import Rows

MAX_ROWS_PER_FILE: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class StagedFragments:
    """Files written for a table that no version refers to yet; each text describes a fragment."""

    layout: str
    fragments: tuple[str, ...]
    row_count: int
    begun_at: float
    """Seconds since the epoch: no file is older. Files nobody names are swept in time."""

    def to_json(self) -> str:
        """One text, for an executor to send to whoever commits."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StagedFragments:
        content = json.loads(text)
        return cls(**{**content, "fragments": tuple(content["fragments"])})

    @property
    def byte_count(self) -> int:
        """How large the data files are."""
        files = (file for text in self.fragments for file in json.loads(text)["files"])
        return sum(file["file_size_bytes"] or 0 for file in files)


def write_append(
    table: Table, data: Rows, *, max_rows_per_file: int = MAX_ROWS_PER_FILE
) -> StagedFragments:
    """Write rows as files of the table, a new file every so many rows.

    Raises:
        RecordError: the rows do not fit the table's columns.
    """
    begun_at = time.time()
    if isinstance(data, pa.Table):
        check_columns(table, data)  # what does not fit is refused before any file is written
    source = AlignedReader(table, data.to_reader() if isinstance(data, pa.Table) else data)
    try:
        written = write_fragments(
            source.reader,
            table.dataset,
            mode="append",
            max_rows_per_file=max_rows_per_file,
            storage_options=table.store.options,
        )
    except LIBRARY_ERRORS as problem:
        raise source.failure(problem, "writing rows") from problem
    texts = tuple(json.dumps(fragment.to_json()) for fragment in written)
    return StagedFragments(layout(table), texts, count_fragments(written), begun_at)


def count_fragments(written: Sequence[FragmentMetadata]) -> int:
    """Count what was written, for reports; the number of its rows."""
    files = [file for fragment in written for file in fragment.files]
    rows = sum(fragment.physical_rows for fragment in written)
    count_written(rows, sum(file.file_size_bytes or 0 for file in files), len(files))
    return rows


def combine(table: Table, parts: Iterable[StagedFragments]) -> StagedFragments:
    """What several writers wrote for one table, in the order given.

    Raises:
        PreconditionFailed: a part was written for other columns than the table has now.
    """
    texts: list[str] = []
    row_count = 0
    begun_at = time.time()
    for part in parts:
        check_layout(table, part.layout)
        texts += part.fragments
        row_count += part.row_count
        begun_at = min(begun_at, part.begun_at)
    return StagedFragments(layout(table), tuple(texts), row_count, begun_at)


def unstaged(table: Table, staged: StagedFragments) -> list[FragmentMetadata]:
    """The fragments as Lance knows them.

    Raises:
        PreconditionFailed: they were written for other columns than the table has now.
    """
    check_layout(table, staged.layout)
    with translated("reading staged fragments", table.uri):
        return [FragmentMetadata.from_json(text) for text in staged.fragments]


def current_fragments(table: Table) -> list[FragmentMetadata]:
    """The fragments of the table's version, in scan order: reads nothing."""
    return [fragment.metadata for fragment in table.dataset.get_fragments()]


def layout(table: Table) -> str:
    """A digest of the columns with their field ids, by which files find their columns.

    Two versions of a table may have the same columns under other ids, or other columns under the
    same ids; files go from one to the other only where the layout is the same.
    """
    types = [[str(field.type), field.nullable] for field in table.schema]
    ids = [_field_ids(field) for field in table.dataset.lance_schema.fields()]
    return hashlib.sha256(json.dumps([types, ids]).encode()).hexdigest()


def check_layout(table: Table, expected: str) -> None:
    """Refuse files that were written for another layout.

    Raises:
        PreconditionFailed: the table's columns are not those the files were written for.
    """
    actual = layout(table)
    if actual != expected:
        raise PreconditionFailed(f"the column layout of `{table.location}`", expected, actual)


def _field_ids(field: LanceField) -> list[object]:
    return [field.id(), field.name(), [_field_ids(child) for child in field.children()]]
