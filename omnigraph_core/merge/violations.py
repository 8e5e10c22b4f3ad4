"""Rules that a merged graph would break: what the source brings comes in, conflicts go out.

The rules and the code are those of every write; what is written here is what the source has changed
since the base. Rows that are in conflict themselves break nothing: nobody knows yet what they will
be.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.changes import MISSING, changed_rows
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.merge.model import MergeConflict, MergeConflictKind
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.storage.sparse import spread
from omnigraph_core.violations import UNBOUNDED, Rule, Violation, Violations
from omnigraph_core.write.batches import FRESH, LINE, PLACE_FIELDS, SOURCE, Batch, Places
from omnigraph_core.write.constraints import check_rows
from omnigraph_core.write.integrity import TableDelta, check_delta, key_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from omnigraph_core.compare.touched import TouchedRows
    from omnigraph_core.compare.view import RowView
    from omnigraph_core.compare.workers import Comparing
    from omnigraph_core.merge.meeting import MeetingView
    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.batches import GraphType

_KINDS: Final = {
    Rule.UNIQUE: MergeConflictKind.UNIQUE_VIOLATION,
    Rule.KEY: MergeConflictKind.UNIQUE_VIOLATION,
    Rule.ENDPOINT: MergeConflictKind.ORPHAN_EDGE,
    Rule.ORPHAN: MergeConflictKind.ORPHAN_EDGE,
    Rule.CARDINALITY: MergeConflictKind.CARDINALITY_VIOLATION,
}
_OF_EDGES: Final = frozenset({Rule.ENDPOINT, Rule.ORPHAN, Rule.CARDINALITY})
_FEW_REQUESTS: Final = 4
"""Fewer than it takes to find out whether there is a cheaper way."""
_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class BroughtRows:
    """What the source brings to one table, in some columns."""

    rows: Iterator[pa.Table]
    """New to the target, or in the place of one of its rows."""
    deleted: pa.StringArray
    """Ids of rows that go."""
    undecided: pa.StringArray
    """Ids of rows in conflict."""


class Brought(Protocol):
    """What the source brings to one table."""

    def changes(self, columns: Sequence[str] | None = None) -> BroughtRows: ...

    def is_settled(self, columns: Sequence[str], count: int) -> np.ndarray | None:
        """For each row, whether nobody else in the target can have its values; None: for none."""
        ...

    def is_attached(self) -> np.ndarray | None:
        """For each of its edges, whether the target has it with the same ends; None: for none."""
        ...

    @property
    def mixed(self) -> int:
        """How many rows, the last ones, have values of both sides."""
        ...


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Of a table merged row by row."""

    merge: RowMerge
    is_met: bool = False
    """The target's own rows are all that is looked at: nothing has to be left out."""
    end_cost: Callable[[], int] = lambda: sys.maxsize
    """Requests, about, that it takes to look for nodes at the ends of edges."""

    @property
    def mixed(self) -> int:
        return len(self.merge.writes.combined)

    def changes(self, columns: Sequence[str] | None = None) -> BroughtRows:
        rows = self.merge.iter_rows(columns)
        return BroughtRows(rows, self.merge.writes.deleted_ids, self.merge.conflicts.ids)

    def is_settled(self, columns: Sequence[str], _count: int) -> np.ndarray | None:
        return None if self.is_met else self.merge.keeps(columns)

    def is_attached(self) -> np.ndarray | None:
        ends, writes = tuple(EDGE_ENDS.values()), self.merge.writes
        cost = len(ends) * spread(writes.origins[writes.origins != MISSING])
        is_cheap = cost <= _FEW_REQUESTS or cost < self.end_cost()
        return self.merge.keeps(ends) if is_cheap else None


@dataclass(frozen=True, slots=True)
class AdoptedRows:
    """Of a table taken over as it is: found by comparing with the base, in these columns only."""

    base: RowView | None
    theirs: RowView
    has_other_rules: bool
    """The merged schema may ask more of the rows than the source's did."""
    workers: Comparing | None = None
    """Who compares; None: this process."""

    @property
    def mixed(self) -> int:
        return 0

    def changes(self, columns: Sequence[str] | None = None) -> BroughtRows:
        compare = changed_rows if self.workers is None else self.workers.changed_rows
        found = compare(self.base, self.theirs, columns)
        rows = self.theirs.iter_taken(found.after[~found.deleted], columns)
        return BroughtRows(rows, found.ids.filter(pa.array(found.deleted)), _NO_IDS)

    def is_settled(self, _columns: Sequence[str], count: int) -> np.ndarray:
        # Every row of the result is the source's, and those have been checked.
        return np.full(count, not self.has_other_rules)

    def is_attached(self) -> np.ndarray | None:
        return None  # edges that kept their ends are not among the rows that differ


@dataclass(frozen=True, slots=True)
class MetRows:
    """Of a table taken over, where what the target has written elsewhere is all it can meet.

    Nodes can then only be missed, edges only miss them: no value is compared.
    """

    touched: TouchedRows
    """By the source."""
    keep_ids: Callable[[int], bool]
    """Whether the source is known to have deleted nothing; takes the requests this would save."""

    @property
    def mixed(self) -> int:
        return 0

    def changes(self, columns: Sequence[str] | None = None) -> BroughtRows:
        if isinstance(self.touched.side.type, EdgeType):
            names = self.touched.side.columns if columns is None else columns
            rows = self.touched.columns(names).select(list(names))
            return BroughtRows(iter([rows]), _NO_IDS, _NO_IDS)
        is_complete = self.keep_ids(spread(self.touched.gone_places))
        deleted = _NO_IDS if is_complete else self.touched.deleted_ids
        return BroughtRows(iter(()), deleted, _NO_IDS)

    def is_settled(self, _columns: Sequence[str], _count: int) -> np.ndarray | None:
        return None

    def is_attached(self) -> np.ndarray | None:
        return None


def check_together(
    brought: Mapping[str, Brought],
    types: Mapping[str, GraphType],
    catalog: Catalog,
    view: MeetingView,
) -> Violations:
    """Check the rules that rows keep together, against the target.

    Args:
        brought: by the keys of the merged schema.
        view: the target's rows.
    """
    violations = Violations(UNBOUNDED)
    deltas = {
        key: _delta(types[key], number, brought[key]) for number, key in enumerate(sorted(brought))
    }
    for key, delta in deltas.items():
        view.prepare(key, delta, brought[key].mixed)
    ids = tuple((key, delta.rows.column("id")) for key, delta in deltas.items())
    check_delta(deltas, catalog, view, RowPlaces(tables=ids), violations)
    return violations


def check_alone(
    table_key: str, type: GraphType, portions: Iterable[pa.Table], violations: Violations
) -> None:
    """Check the rules that a row keeps by itself."""
    for rows in portions:
        places = RowPlaces(tables=((table_key, rows.column("id")),))
        check_rows(Batch(type, _placed(rows, 0)), places, violations)


def to_conflicts(
    violations: Iterable[Violation],
    catalog: Catalog,
    labels: Mapping[str, str],
    undecided: Mapping[str, frozenset[str]],
) -> list[MergeConflict]:
    """One conflict for each row that breaks a rule, whatever the number of ways it does.

    Args:
        catalog: the merged one.
        labels: by its keys, those the target's users know.
        undecided: by its keys, ids of rows in conflict.
    """
    found: dict[tuple[str, str | None, MergeConflictKind, str], list[str]] = {}
    for violation in violations:
        key = _table_key(violation, catalog)
        if violation.id is not None and violation.id in undecided.get(key, ()):
            continue
        kind = _KINDS.get(violation.rule, MergeConflictKind.VALUE_CONSTRAINT_VIOLATION)
        apart = violation.message if violation.id is None else ""
        place = (labels.get(key, key), violation.id, kind, apart)
        found.setdefault(place, []).append(violation.message)
    return [
        MergeConflict(key, id, kind, "; ".join(dict.fromkeys(messages)))
        for (key, id, kind, _), messages in found.items()
    ]


@dataclass(frozen=True, slots=True)
class RowPlaces(Places):
    """Rows of tables, told by key and id: there is no file they came from."""

    tables: tuple[tuple[str, pa.ChunkedArray], ...] = ()

    def at(self, violation: Violation, source: int, line: int) -> Violation:
        key, ids = self.tables[source]
        return replace(violation, file=f"{key} {ids[line].as_py()!r}")


def _table_key(violation: Violation, catalog: Catalog) -> str:
    if violation.file is not None:
        return violation.file.partition(" ")[0]  # no key has a blank
    name = violation.type_name or ""
    is_edge = violation.rule in _OF_EDGES or name not in catalog.nodes
    return edge_table_key(name) if is_edge else node_table_key(name)


def _delta(type: GraphType, number: int, brought: Brought) -> TableDelta:
    columns = key_columns(type)
    empty = pa.schema([table_schema(type).field(name) for name in columns]).empty_table()
    changes = brought.changes(columns)
    rows = pa.concat_tables([empty, *changes.rows])
    fresh = pa.array(np.zeros(rows.num_rows, np.bool_))
    placed = _placed(rows, number).append_column(FRESH, fresh)
    unique = tuple(dict.fromkeys(column for group in type.unique for column in group))
    settled = brought.is_settled(unique, rows.num_rows) if unique and rows.num_rows else None
    attached = brought.is_attached() if isinstance(type, EdgeType) and rows.num_rows else None
    return TableDelta(
        type,
        placed,
        changes.deleted,
        claimed=changes.undecided,
        settled=settled,
        attached=attached,
        has_distinct_ids=True,  # each is an id of the source, and those occur once
    )


def _placed(rows: pa.Table, number: int) -> pa.Table:
    """The rows with where they are: the number of their table, and their own in it."""
    places = {
        SOURCE: np.full(rows.num_rows, number, np.int32),
        LINE: np.arange(rows.num_rows, dtype=np.int64),
    }
    for field in PLACE_FIELDS:
        rows = rows.append_column(field, pa.array(places[field.name], field.type))
    return rows
