"""Whether the result of a merge keeps the rules: planned tables come in, conflicts go out.

What each side keeps by itself is not looked at again. Rows are checked where those of both sides
meet, where rows of the source come under rules of the target, and where the merged schema asks more
of the target's rows than it did.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.touched import TouchedRows, touched_rows
from omnigraph_core.compare.view import RowView
from omnigraph_core.evolve.validate import check_tightened
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.merge.groups import TableSides, connected, tables_to_check
from omnigraph_core.merge.meeting import MOST_MET, MeetingView, OurRows
from omnigraph_core.merge.model import MergeConflict, MergeConflictKind, TableDisposition
from omnigraph_core.merge.sides import document_of, types_by_key
from omnigraph_core.merge.violations import (
    AdoptedRows,
    MergedRows,
    MetRows,
    check_alone,
    check_together,
    to_conflicts,
)
from omnigraph_core.schema.arrow import COMPANION_MARK
from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.schema.relabel import plan_continued
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.runs import is_in
from omnigraph_core.violations import UNBOUNDED, Violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.merge.violations import Brought
    from omnigraph_core.merge.work import Sides, TableWork
    from omnigraph_core.schema.migrate import MigrationPlan
    from omnigraph_core.storage.version_rows import OwnRows


def check_result(
    works: Sequence[TableWork], sides: Sides, schema: AcceptedSchema
) -> tuple[list[MergeConflict], frozenset[str]]:
    """What the merged graph would break.

    Returns:
        Conflicts, and the keys of the target's tables that were looked at.
    """
    check = _Check(
        {work.key: work for work in works if work.disposition is not TableDisposition.REMOVED},
        sides,
        schema,
    )
    found = Violations.together(check.together(), check.alone(), check.tightened())
    undecided = {
        key: frozenset(work.rows.conflicts.ids.to_pylist())
        for key, work in check.works.items()
        if work.rows is not None and len(work.rows.conflicts)
    }
    labels = {key: work.case.label for key, work in check.works.items()}
    catalog = accepted_catalog(schema)
    conflicts = to_conflicts(found.listed, catalog, labels, undecided)
    return [*conflicts, *check.unfollowed()], sides.our_keys(check.read)


@dataclass(slots=True)
class _Check:
    works: Mapping[str, TableWork]
    """By the keys of the merged schema."""
    sides: Sides
    schema: AcceptedSchema
    read: frozenset[str] = frozenset()
    _met: dict[str, OurRows | None] = field(default_factory=dict)

    def together(self) -> Violations:
        """The rules that rows keep together."""
        catalog = accepted_catalog(self.schema)
        keys = tables_to_check(catalog, {key: self._sides_of(key) for key in self.works})
        brought = {
            key: self._brought(key)
            for key in keys
            if key in self.works and self._sides_of(key).has_theirs
        }
        if not brought:
            return Violations(UNBOUNDED)
        types = types_by_key(catalog)
        view = MeetingView(self._our_view, types, self._our_rows)
        found = check_together(brought, types, catalog, view)
        self.read |= view.read
        return found

    def alone(self) -> Violations:
        """The rules that each row keeps by itself, for rows that nobody has checked by them."""
        found = Violations(UNBOUNDED)
        types = types_by_key(accepted_catalog(self.schema))
        for key, work in self.works.items():
            side = self._sides_of(key)
            if side.has_theirs and side.has_other_rules:
                check_alone(key, types[key], self._brought(key).changes().rows, found)
            elif work.rows is not None:
                check_alone(key, types[key], work.rows.iter_combined(), found)
        return found

    def tightened(self) -> Violations:
        """What the merged schema asks of rows more than the target's did."""
        found = Violations(UNBOUNDED)
        plan = self._plan()
        if plan is not None:
            before = accepted_catalog(self.sides.ours.snapshot.schema)
            after = accepted_catalog(self.schema)
            self.read |= check_tightened(before, after, plan, self._result_view, found)
        return found

    def unfollowed(self) -> Iterator[MergeConflict]:
        """Changes of the source's schema, taken in several steps, that the target's rows lack."""
        plan = self._plan()
        for step in plan.unsupported if plan is not None else ():
            key = step.entity.partition(".")[0]
            work = self.works.get(key)
            if work is not None and work.disposition is not TableDisposition.ADOPTED:
                message = f"{step.entity}: {step.reason}; apply the schema to the target first"
                kind = MergeConflictKind.SCHEMA_CONFLICT
                yield MergeConflict(work.case.label, None, kind, message)

    def _plan(self) -> MigrationPlan | None:
        """The way of the target's rows to the merged schema, if there is one to go.

        A target that has changed nothing gets what the source has, which the source has checked.
        """
        base, ours = self.sides.base.snapshot.schema, self.sides.ours.snapshot.schema
        is_changed = any(work.case.is_ours_changed for work in self.works.values())
        if ours.hash == self.schema.hash or (ours.hash == base.hash and not is_changed):
            return None
        return plan_continued(document_of(ours), document_of(self.schema))

    def _sides_of(self, key: str) -> TableSides:
        work = self.works[key]
        case, rows = work.case, work.rows
        has_theirs = work.disposition is TableDisposition.ADOPTED
        if rows is not None:
            has_theirs = not rows.writes.is_empty or len(rows.conflicts) > 0
        return TableSides(
            has_ours=case.is_ours_changed if rows is None else rows.has_own_changes,
            has_theirs=has_theirs,
            has_other_rules=case.theirs is not None
            and self.sides.theirs.has_other_rules(case.theirs),
        )

    def _brought(self, key: str) -> Brought:
        work, is_met = self.works[key], self._our_rows(key) is not None
        if work.rows is not None:
            return MergedRows(work.rows, is_met, lambda: self._end_cost(key))
        case = work.case
        assert case.theirs is not None  # what is adopted is there
        base = None if case.base is None else self.sides.base.view(case.base)
        theirs = self.sides.theirs.view(case.theirs)
        touched = touched_rows(base, theirs) if is_met and base is not None else None
        if touched is not None:
            return MetRows(touched, partial(self.sides.they_keep_ids, case))
        has_other_rules = self._sides_of(key).has_other_rules
        return AdoptedRows(base, theirs, has_other_rules, self.sides.workers)

    def _end_cost(self, key: str) -> int:
        """Requests, about, that it takes to look for the ends of edges."""
        catalog = accepted_catalog(self.schema)
        type = types_by_key(catalog)[key]
        if not isinstance(type, EdgeType):
            return 0
        ends = {catalog.nodes[name].table_key for name in (type.source, type.target)}
        found = [self._our_rows(end) for end in ends]
        return sum(sys.maxsize if ours is None else ours.cost for ours in found)

    def _our_rows(self, key: str) -> OurRows | None:
        """What the target did to a table, if no more than that has to be looked at."""
        if key not in self._met:
            self._met[key] = self._find_ours(key)
        return self._met[key]

    def _find_ours(self, key: str) -> OurRows | None:
        catalog = accepted_catalog(self.schema)
        type = types_by_key(catalog)[key]
        if isinstance(type, EdgeType) and type.cardinality.minimum:
            return None  # rows that were taken away count as well
        if not all(self._is_plain(other) for other in connected(catalog, [key])):
            return None
        case, rows = self.works[key].case, self.works[key].rows
        refused = pa.array([], pa.utf8()) if rows is None else rows.refused
        if not case.is_divided or not case.is_ours_changed:
            return OurRows(type, None, refused=refused)
        if case.base is None or case.ours is None:
            return None
        base, ours = self.sides.base.view(case.base), self.sides.ours.view(case.ours)
        known = None if rows is None else rows.mine
        touched = known if isinstance(known, TouchedRows) else touched_rows(base, ours)
        if touched is None or len(touched) > MOST_MET:
            return None
        return OurRows(type, touched, partial(self.sides.we_keep_ids, case), refused)

    def _is_plain(self, key: str) -> bool:
        work = self.works.get(key)
        return work is not None and self.sides.have_same_rules(work.case)

    def _our_view(self, key: str) -> RowView | None:
        work = self.works.get(key)
        if work is None or work.case.ours is None:
            return None
        return self.sides.ours.view(work.case.ours)

    def _result_view(self, key: str) -> RowView | None:
        work = self.works.get(key)
        if work is None:
            return None
        if work.disposition is TableDisposition.ADOPTED and work.case.theirs is not None:
            return self.sides.theirs.view(work.case.theirs)
        ours = self._our_view(key)
        if ours is None or work.rows is None or work.rows.writes.is_empty:
            return ours
        return _ResultView(ours, work.rows)


class _ResultView(RowView):
    """The rows that a table will have: the target's that stay, and what the source brings."""

    __slots__ = ("_merge",)

    def __init__(self, ours: RowView, merge: RowMerge) -> None:
        sources = {column: ours.stored(column) for column in ours.columns}
        super().__init__(ours.table, ours.type, ours.schema, sources)
        self._merge = merge

    def iter_own(self, own: OwnRows, columns: Sequence[str]) -> Iterator[pa.Table]:
        leaving = np.sort(self._merge.writes.leaving)
        for rows in super().iter_own(own, columns):
            goes = is_in(rows.column(ADDRESS).to_numpy(), leaving)
            yield rows.filter(pa.array(~goes))
        for rows in self._merge.iter_rows(columns):
            nowhere = np.zeros(rows.num_rows, np.uint64)
            yield rows.append_column(ADDRESS, pa.array(nowhere))

    def iter_lacking(self, columns: Sequence[str]) -> Iterator[tuple[RowView, np.ndarray]]:
        writes, combined = self._merge.writes, self._merge.writes.combined
        name = columns[0].partition(COMPANION_MARK)[0]
        is_brought = combined.from_theirs.get(name, np.zeros(len(combined), np.bool_))
        # Of a row with values of both, the side that these come from tells.
        leaving, staying = np.sort(writes.leaving), np.sort(combined.ours[~is_brought])
        gone = leaving[~is_in(leaving, staying)]
        for view, addresses in super().iter_lacking(columns):
            yield view, addresses[~is_in(addresses, gone)]
        brought = np.sort(np.concatenate([writes.taken, combined.theirs[is_brought]]))
        for view, addresses in self._merge.theirs.iter_lacking(columns):
            yield view, addresses[is_in(addresses, brought)]
