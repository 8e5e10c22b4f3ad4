"""All columns of a table changed at once: a table and the columns wanted come in, a version of it
with these goes out.

Renaming, dropping, adding nulls and nullability edit the schema alone. Only columns whose values
differ from what is stored are written, beside the others: rows keep their fragments and addresses,
and indexes of columns that stay as they are serve on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import LanceOperation
from lance.schema import LanceSchema

from omnigraph_core.errors import InvariantBroken, OmnigraphError
from omnigraph_core.storage.blob_columns import PLAIN, stored_field
from omnigraph_core.storage.detached import stage
from omnigraph_core.storage.fragments import current_fragments, layout
from omnigraph_core.storage.indexes import index_coverage, stage_drop_index
from omnigraph_core.storage.proto import NO_PARENT, FieldRecord, split_schema
from omnigraph_core.storage.row_space import live_offsets, read_fragments
from omnigraph_core.storage.translate import LIBRARY_ERRORS, storage_error, translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance.fragment import DataFile, FragmentMetadata, LanceFragment

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.detached import Operation

_FILL_ROWS: Final = 65_536
"""Rows of a batch of a filled column."""

_PROVISIONAL: Final = "##{}"
"""The name of a written column until it takes its own: no column is called so."""

_LATE: Final = "#{}"
"""The same for a column whose name another one has to give up first."""


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column as it is to be.

    `source` is the stored column its values come from, None for a new one; `fill` stands in for
    nulls, and for every value of a new column.
    """

    field: pa.Field
    source: str | None
    fill: pa.Scalar | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    """The new files of a fragment, without values for rows that were deleted by then."""

    files: tuple[DataFile, ...]
    schema: LanceSchema
    deletion: tuple[int, int] | None
    deleted: np.ndarray


@dataclass(slots=True)
class WrittenColumns:
    """Columns that were written for versions which others have overtaken, by the old files.

    For one change of schema: the same wanted columns every time. Nobody names the files, so they
    are good only for as long as nobody sweeps them.
    """

    fragments: dict[tuple[object, ...], _Written] = field(default_factory=dict)
    reused: int = 0


def rearrange(
    table: Table, wanted: Sequence[WantedColumn], *, done: WrittenColumns | None = None
) -> Table | None:
    """The table with exactly these columns in this order; None where only the order would change.

    That is one version, or two where Lance does not take it at once. The indexes of a renamed
    column go: they are known by its name.

    Args:
        done: what earlier versions of the table have; fragments it knows are not written again.

    Raises:
        InvariantBroken: a source is not there, a column cannot become what is wanted, or nulls
            would be where none may be.
    """
    _check(table, wanted)
    if _is_there(table, wanted):
        return None
    fragments = current_fragments(table)
    done = WrittenColumns() if done is None else done
    written = [item for item in wanted if fragments and _is_written(table, item)]
    first = _first_step(table, wanted, written) if fragments else wanted
    changed = stage(
        table,
        "changing the columns",
        lambda: _operation(table, wanted, first, written, fragments, done),
    )
    rest = [
        WantedColumn(item.field, done.field.name) for item, done in zip(wanted, first, strict=True)
    ]
    return _without_renamed_indexes(rearrange(changed, rest) or changed, wanted)


def _check(table: Table, wanted: Sequence[WantedColumn]) -> None:
    has_rows = table.count_fragments() > 0
    for item in wanted:
        name = item.field.name
        if item.source is not None and item.source not in table.schema.names:
            raise InvariantBroken(f"`{table.location}` has a column `{item.source}` for `{name}`")
        if item.fill is not None and (item.fill.type != item.field.type or not item.fill.is_valid):
            raise InvariantBroken(f"`{name}` of {item.field.type} is filled with {item.fill!r}")
        if item.field.type == PLAIN and _changes_values(table, item):
            raise InvariantBroken(f"the bytes of `{name}` stay as they are")
        if has_rows and not item.field.nullable and item.fill is None and _lacks(table, item):
            raise InvariantBroken(f"`{name}` of `{table.location}` has a value in every row")


def _lacks(table: Table, item: WantedColumn) -> bool:
    """Whether rows are without a value that is neither stored nor given."""
    if item.source is None:
        return True
    return table.schema.field(item.source).nullable and _has_nulls(table, item.source)


def _changes_values(table: Table, item: WantedColumn) -> bool:
    """Whether values may differ from what is stored, as far as the schema tells."""
    if item.source is None:
        return item.fill is not None
    return item.fill is not None or table.schema.field(item.source).type != item.field.type


def _is_there(table: Table, wanted: Sequence[WantedColumn]) -> bool:
    if {item.field.name for item in wanted} != set(table.schema.names):
        return False
    return all(
        item.source is not None
        and item.source == item.field.name
        and table.schema.field(item.source).equals(item.field)
        and not (item.fill is not None and _has_nulls(table, item.source))
        for item in wanted
    )


def _is_written(table: Table, item: WantedColumn) -> bool:
    if item.source is None:
        return item.fill is not None
    is_other = table.schema.field(item.source).type != item.field.type
    return is_other or (item.fill is not None and _has_nulls(table, item.source))


def _first_step(
    table: Table, wanted: Sequence[WantedColumn], written: Sequence[WantedColumn]
) -> Sequence[WantedColumn]:
    """The columns as far as they can become what is wanted while others come.

    Lance wants a version with new columns to leave the names and the nullability of those that stay
    as they are, and takes a column of nulls under an old name for the old one, its values lost.
    """
    names = {item.field.name for item in written}
    if not names and all(item.source is not None for item in wanted):
        return wanted
    stay = {item.source for item in wanted if item.field.name not in names} - {None}
    stored = table.schema
    first = []
    for item in wanted:
        field, is_written = item.field, item.field.name in names
        if item.source is not None and not is_written:
            field = stored.field(item.source)
        elif field.name in (stay if is_written else stored.names):
            field = field.with_name(_LATE.format(field.name))
        first.append(replace(item, field=field))
    return first


def _has_nulls(table: Table, column: str) -> bool:
    with translated("looking for nulls", table.uri):
        scanner = table.dataset.scanner(
            columns=[], filter=f"`{column}` IS NULL", limit=1, with_row_address=True
        )
        return bool(scanner.to_table().num_rows)


def _operation(
    table: Table,
    wanted: Sequence[WantedColumn],
    first: Sequence[WantedColumn],
    written: Sequence[WantedColumn],
    fragments: list[FragmentMetadata],
    done: WrittenColumns,
) -> Operation:
    schema: LanceSchema = table.dataset.lance_schema
    if written:
        fragments, schema = _write(table, written, done)
    places = {item.field.name: _PROVISIONAL.format(at) for at, item in enumerate(written)}
    arrangement = _Arrangement(table, split_schema(schema)[1])
    for item, target in zip(first, wanted, strict=True):
        arrangement.put(item, places.get(target.field.name))
    with translated("changing the schema", table.uri):
        final = _schema_of(table, arrangement.records)
        if written or arrangement.has_new:
            return LanceOperation.Merge(fragments, final)
        return LanceOperation.Project(final)


def _schema_of(table: Table, records: Sequence[FieldRecord]) -> LanceSchema:
    metadata, _ = split_schema(table.dataset.lance_schema)
    return LanceSchema._from_protos(metadata, *(record.content for record in records))


class _Arrangement:
    """The fields of the new schema, one column after the other, under the ids they are known by."""

    def __init__(self, table: Table, stored: Sequence[FieldRecord]) -> None:
        self.records: list[FieldRecord] = []
        self.has_new = False
        self._types = {field.name: field.type for field in table.schema}
        self._columns = {record.name: record for record in stored if record.parent_id == NO_PARENT}
        self._stored = stored
        # Counts the ids of data files too: a dropped column's values must not come back.
        known = (table.dataset.max_field_id, *(record.id for record in stored))
        self._next_id = max(known) + 1

    def put(self, item: WantedColumn, written_as: str | None) -> None:
        """Add the fields of a column: written ones, stored ones, or new ones without values."""
        if written_as is None and self._types.get(item.source or "") != item.field.type:
            self._add(item.field)
            return
        root, *below = self._family(self._columns[written_as or item.source or ""])
        named = root.renamed(item.field.name)
        self.records += [named.with_nullable(is_nullable=item.field.nullable), *below]

    def _family(self, root: FieldRecord) -> list[FieldRecord]:
        """A column's field and those inside it; parents come before children."""
        found, ids = [root], {root.id}
        for record in self._stored:
            if record.parent_id in ids:
                found.append(record)
                ids.add(record.id)
        return found

    def _add(self, field: pa.Field) -> None:
        _, new = split_schema(LanceSchema.from_pyarrow(pa.schema([stored_field(field)])))
        ids = {record.id: self._next_id + place for place, record in enumerate(new)}
        ids[NO_PARENT] = NO_PARENT
        self.records += [record.renumbered(ids[record.id], ids[record.parent_id]) for record in new]
        self._next_id += len(new)
        self.has_new = True


def _write(
    table: Table, written: Sequence[WantedColumn], done: WrittenColumns
) -> tuple[list[FragmentMetadata], LanceSchema]:
    """Write the columns beside the others: one file per fragment, unless there is one."""
    # The fields of the files get the next free ids, in this order.
    names = tuple(item.field.name for item in written)
    columns = (table.location, layout(table), table.dataset.max_field_id, names)
    fragments, schema = [], table.dataset.lance_schema
    for fragment in table.dataset.get_fragments():
        key = (*columns, *(file.path for file in fragment.metadata.files))
        known = done.fragments.get(key)
        if known is not None and _covers(known, table, fragment.metadata):
            done.reused += 1
        else:
            known = done.fragments[key] = _write_fragment(table, written, fragment)
        old, schema = fragment.metadata, known.schema
        fragments.append(replace(old, files=[*old.files, *known.files]))
    return fragments, schema


def _covers(known: _Written, table: Table, fragment: FragmentMetadata) -> bool:
    """Whether every live row has its values: places of deleted ones are empty."""
    if known.deletion == _deletion(fragment) or not len(known.deleted):
        return True
    return not np.isin(known.deleted, live_offsets(table, fragment.id)).any()


def _deletion(fragment: FragmentMetadata) -> tuple[int, int] | None:
    file = fragment.deletion_file
    return None if file is None else (file.read_version, file.id)


def _write_fragment(
    table: Table, written: Sequence[WantedColumn], fragment: LanceFragment
) -> _Written:
    fields = [
        item.field.with_name(_PROVISIONAL.format(place)) for place, item in enumerate(written)
    ]
    values = _Values(table, written, pa.schema(fields), fragment.fragment_id)
    values.row_count = fragment.count_rows()
    try:
        # Live rows are asked for: Lance fills the places of deleted ones itself.
        merged, schema = fragment.merge_columns(values.reader())
    except LIBRARY_ERRORS as problem:
        raise values.failure(problem) from problem
    old = fragment.metadata
    new = tuple(merged.files[len(old.files) :])
    return _Written(new, schema, _deletion(old), _deleted(table, old))


def _deleted(table: Table, fragment: FragmentMetadata) -> np.ndarray:
    if fragment.deletion_file is None:
        return np.zeros(0, np.int64)
    return np.setdiff1d(np.arange(fragment.physical_rows), live_offsets(table, fragment.id))


class _Values:
    """The values of written columns for the rows of one fragment, in batches.

    A library that pulls batches reports a failing source by text alone; `failure` keeps the error.
    """

    def __init__(
        self, table: Table, written: Sequence[WantedColumn], schema: pa.Schema, fragment_id: int
    ) -> None:
        self._table = table
        self._written = written
        self._schema = schema
        self._fragment_id = fragment_id
        self._problem: Exception | None = None
        self.row_count = 0

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def failure(self, library: Exception) -> OmnigraphError:
        """The error to raise after the library failed: the source's own, if that was the cause."""
        if isinstance(self._problem, OmnigraphError):
            return self._problem
        return storage_error(self._problem or library, "writing a column", self._table.uri)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        sources = tuple(dict.fromkeys(item.source for item in self._written if item.source))
        try:
            for rows in self._rows(sources):
                columns = [_values_of(item, rows) for item in self._written]
                yield pa.record_batch(columns, schema=self._schema)
        except (OmnigraphError, *LIBRARY_ERRORS) as problem:
            self._problem = problem
            raise

    def _rows(self, sources: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        if sources:
            yield from read_fragments(self._table, sources, (self._fragment_id,))
            return
        for start in range(0, self.row_count, _FILL_ROWS):
            size = min(_FILL_ROWS, self.row_count - start)
            yield pa.record_batch([pa.nulls(size)], names=["#"])


def _values_of(item: WantedColumn, rows: pa.RecordBatch) -> pa.Array:
    if item.source is None:
        return pa.repeat(item.fill, rows.num_rows)
    values = rows.column(item.source).cast(item.field.type)
    return values if item.fill is None else pc.coalesce(values, item.fill)


def _without_renamed_indexes(table: Table, wanted: Sequence[WantedColumn]) -> Table:
    renamed = {item.field.name for item in wanted if item.source not in (None, item.field.name)}
    if renamed:
        for index in index_coverage(table):
            if renamed.intersection(index.columns):
                table = stage_drop_index(table, index.name) or table
    return table
