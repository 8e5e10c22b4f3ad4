"""The first half of a load: input comes in; files, key columns and problems go out.

Nothing here depends on committed rows, only on the schema, so that a load that loses a race keeps
its files and only checks and stages again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.violations import UNBOUNDED, Rule, Violations
from omnigraph_core.write.batches import FRESH, LINE, SOURCE, Batch, batch_schema
from omnigraph_core.write.constraints import check_rows
from omnigraph_core.write.embed import lacks_vector
from omnigraph_core.write.identity import assign_ids
from omnigraph_core.write.integrity import key_columns
from omnigraph_core.write.progress import Step
from omnigraph_core.write.records import read_batches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.fragments import StagedFragments
    from omnigraph_core.write.batches import GraphType, Places
    from omnigraph_core.write.embed import VectorFiller
    from omnigraph_core.write.files import TableFiles
    from omnigraph_core.write.progress import Reporter
    from omnigraph_core.write.sources import Source

NUMBER: Final = "#number"
"""Working column: which row of its table it is, in the order of reading. A line does not tell:
an array of records may stand on one."""
LeftOut = dict[str, set[int]]
"""Numbers of rows, by table key, that a reading passes over."""


@dataclass(slots=True)
class Collected:
    """What is known of the rows of a load, by table key."""

    types: dict[str, GraphType] = field(default_factory=dict)
    keys: dict[str, pa.Table] = field(default_factory=dict)
    """Key columns of every row that has an id, with the working columns."""
    files: dict[str, StagedFragments] = field(default_factory=dict)
    claimed: dict[str, list[pa.Array]] = field(default_factory=lambda: defaultdict(list))
    """Ids of records that could not be read whole."""
    embedded: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """One pass over the input. Without `files` it only checks."""

    sources: Sequence[Source]
    catalog: Catalog
    places: Places
    violations: Violations
    reporter: Reporter
    left_out: Mapping[str, set[int]] = field(default_factory=dict)
    is_tolerant: bool = False
    """Rows that break a rule are passed over; otherwise nothing is written once one does."""
    only: Collection[str] | None = None
    """Table keys; records of other types are passed over."""


def collect(reading: Reading, files: TableFiles | None, filler: VectorFiller | None) -> Collected:
    """Read everything once; rows that break a rule are reported and not written.

    Their keys are kept unless they are passed over: an edge of a node with a wrong age is no second
    mistake.
    """
    collected = Collected()
    kept: dict[str, list[pa.Table]] = defaultdict(list)
    seen: Counter[str] = Counter()
    for batch in _batches(reading, collected):
        identified = assign_ids(_numbered(batch, seen), reading.places, reading.violations)
        good = check_rows(identified, reading.places, reading.violations)
        reading.reporter.add(Step.VALIDATED, batch.rows.num_rows)
        key = batch.type.table_key
        rows = _kept(identified.rows, good, is_tolerant=reading.is_tolerant)
        rows = _without(rows, reading.left_out.get(key))
        collected.types[key] = batch.type
        kept[key].append(rows.select(no_keys(batch.type).column_names))
        if files is not None and filler is not None and _is_worth_writing(reading, rows):
            _write(Batch(batch.type, rows), files, filler, collected)
    collected.keys = {
        key: pa.concat_tables([no_keys(type), *kept[key]]) for key, type in collected.types.items()
    }
    if files is not None and (reading.is_tolerant or not reading.violations.total):
        collected.files = files.finish()
    return collected


def no_keys(type: GraphType) -> pa.Table:
    """The columns of the keys that are kept, without rows."""
    working = [pa.field(FRESH, pa.bool_()), pa.field(NUMBER, pa.int64())]
    columns = batch_schema(type)
    fields = [columns.field(name) for name in (*key_columns(type), SOURCE, LINE)]
    return pa.schema([*fields, *working]).empty_table()


def note_rows(left_out: LeftOut, table_key: str, rows: pa.Table) -> None:
    """Have rows left out of the next reading."""
    left_out.setdefault(table_key, set()).update(rows.column(NUMBER).to_pylist())


def _batches(reading: Reading, collected: Collected) -> Iterator[Batch]:
    def on_refused(refused: Batch) -> None:
        identified = assign_ids(refused, reading.places, Violations(0))
        _check_refused(identified, reading)
        collected.types[refused.type.table_key] = refused.type
        if isinstance(refused.type, NodeType) and not reading.is_tolerant:
            ids = pc.drop_null(identified.rows.column("id"))
            collected.claimed[refused.type.table_key] += ids.chunks

    return read_batches(
        reading.sources,
        reading.catalog,
        reading.places,
        reading.violations,
        on_read=lambda rows: reading.reporter.add(Step.READ, rows),
        on_refused=on_refused,
        only=reading.only,
    )


def _check_refused(refused: Batch, reading: Reading) -> None:
    """Report what else is wrong with records that could not be read whole.

    What could not be read is null here, so nothing is said about what is missing.
    """
    found = Violations(UNBOUNDED)
    check_rows(refused, reading.places, found)
    for violation in found.listed:
        if violation.rule is not Rule.REQUIRED:
            reading.violations.add(violation)


def _numbered(batch: Batch, seen: Counter[str]) -> Batch:
    key, count = batch.type.table_key, batch.rows.num_rows
    numbers = pa.array(np.arange(seen[key], seen[key] + count))
    seen[key] += count
    return Batch(batch.type, batch.rows.append_column(NUMBER, numbers))


def _is_worth_writing(reading: Reading, rows: pa.Table) -> bool:
    return bool(rows.num_rows) and (reading.is_tolerant or not reading.violations.total)


def _kept(rows: pa.Table, good: pa.BooleanArray | None, *, is_tolerant: bool) -> pa.Table:
    """The rows to go on with: all that have an id, or only those that break no rule."""
    if is_tolerant and good is not None:
        rows = rows.filter(good)
    if is_tolerant and rows.column(FRESH).null_count:
        rows = rows.filter(pc.is_valid(rows.column(FRESH)))
    if rows.column("id").null_count:
        rows = rows.filter(pc.is_valid(rows.column("id")))
    place = rows.schema.get_field_index(FRESH)
    return rows.set_column(place, FRESH, pc.fill_null(rows.column(FRESH), fill_value=False))


def _without(rows: pa.Table, numbers: set[int] | None) -> pa.Table:
    if not numbers:
        return rows
    passed_over = pc.is_in(rows.column(NUMBER), value_set=pa.array(numbers, pa.int64()))
    return rows.filter(pc.invert(passed_over))


def _write(batch: Batch, files: TableFiles, filler: VectorFiller, collected: Collected) -> None:
    rows = batch.rows
    if isinstance(batch.type, NodeType) and batch.type.embeddings:
        rows = filler.take_over(rows, batch.type)
        lacking = _count_lacking(rows, batch.type)
        rows = filler.fill(rows, batch.type)
        left = _count_lacking(rows, batch.type)
        collected.embedded += lacking - left
        collected.pending += left
    files.add(batch.type, rows)


def _count_lacking(rows: pa.Table, node: NodeType) -> int:
    return sum(
        pc.sum(lacks_vector(rows, vector, embedding)).as_py() or 0
        for vector, embedding in node.embeddings.items()
    )
