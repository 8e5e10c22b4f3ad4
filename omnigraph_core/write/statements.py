"""The statements of a mutation, run in order: each sees what the ones before it did.

Nothing is written: rows and deletions gather in `MutationStaging`. Values that do not fit are
reported and the statement is passed over, so that one run finds the problems of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.exec.conditions import matches
from omnigraph_core.ir.nodes import Delete, Insert, Update
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.write.assign import assigned_cells, changed_rows, new_row
from omnigraph_core.write.batches import STATEMENTS
from omnigraph_core.write.identity import assign_ids
from omnigraph_core.write.pending import ASKS, MutationStaging, committed_rows

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import MutationIR, MutationOp
    from omnigraph_core.plan.values import Values
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.committed import Committed


def run_statements(
    ir: MutationIR, catalog: Catalog, values: Values, base: Committed, violations: Violations
) -> Statements:
    """Run every statement; what they did is in the result."""
    done = Statements(catalog, values, base, violations)
    for number, op in enumerate(ir.ops, 1):
        done.run(op, number)
    done.cascade()
    return done


class Statements:
    """A mutation while it runs: what is pending and how many rows it has affected."""

    def __init__(
        self, catalog: Catalog, values: Values, base: Committed, violations: Violations
    ) -> None:
        self.staging = MutationStaging()
        self._written = dict.fromkeys(EntityKind, 0)
        self._catalog = catalog
        self._values = values
        self._base = base
        self._violations = violations

    @property
    def affected_nodes(self) -> int:
        return self._affected(EntityKind.NODE)

    @property
    def affected_edges(self) -> int:
        return self._affected(EntityKind.EDGE)

    def run(self, op: MutationOp, number: int) -> None:
        """Run one statement; they are counted from 1."""
        types = self._catalog.nodes if op.kind is EntityKind.NODE else self._catalog.edges
        type: GraphType = types[op.type_name]
        match op:
            case Insert():
                self._written[op.kind] += self._insert(op, type, number)
            case Update():
                self._written[op.kind] += self._update(op, type, number)
            case Delete():
                self.staging.delete(type, self._base.ids(type, op.where))

    def cascade(self) -> None:
        """Have the edges go that touch a deleted node.

        Once is enough: statements that delete see no difference between a row that goes and one
        that is gone, and edges have no edges.
        """
        for type, rows in self.staging.deletions:
            if isinstance(type, NodeType):
                self._cascade_from(type, rows.column("id").combine_chunks())

    def _insert(self, op: Insert, type: GraphType, number: int) -> int:
        cells = assigned_cells(type, op.assignments, self._values, number, self._violations)
        if cells is None:
            return 0
        batch = assign_ids(new_row(type, cells, number), STATEMENTS, self._violations)
        pending = self.staging.rows_of(type)
        pending.add(batch.rows.append_column(ASKS, pa.array([True])))
        pending.needs_set_rules = True
        return 1

    def _update(self, op: Update, type: GraphType, number: int) -> int:
        cells = assigned_cells(type, op.assignments, self._values, number, self._violations)
        if cells is None:
            return 0
        pending = self.staging.rows_of(type)
        committed = pending.shadows(self._base.whole(type, op.where))
        own = pending.rows.filter(matches(op.where, pending.rows, self._values))
        found = pa.concat_tables([committed_rows(type, committed), own])
        if found.num_rows:
            pending.add(changed_rows(type, found, cells, number))
            grouped = {column for group in type.unique for column in group}
            pending.needs_set_rules |= not grouped.isdisjoint(cells)
        return int(found.num_rows)

    def _cascade_from(self, node: NodeType, ids: pa.StringArray) -> None:
        for edge in self._catalog.edges.values():
            for side, end in (("src", edge.source), ("dst", edge.target)):
                if end == node.name:
                    self.staging.delete(edge, self._base.edges_at(edge, side, ids))

    def _affected(self, kind: EntityKind) -> int:
        is_node = kind is EntityKind.NODE
        deleted = sum(
            int(rows.num_rows)
            for type, rows in self.staging.deletions
            if isinstance(type, NodeType) is is_node
        )
        return self._written[kind] + deleted
