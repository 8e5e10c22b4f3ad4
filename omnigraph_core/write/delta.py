"""What a write does to one table, and the state in which the checks of a write share it.

Only key columns are here: they are all that rules about several rows look at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, NodeType
from omnigraph_core.write.batches import FRESH
from omnigraph_core.write.findings import Findings
from omnigraph_core.write.tuples import chosen

if TYPE_CHECKING:
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import GraphType, Places


@dataclass(frozen=True, slots=True)
class TableDelta:
    """Rows a write adds or replaces in a table, and ids it deletes.

    `rows` has `key_columns(type)` and the working columns, `FRESH` among them. `deleted` are
    committed ids that are not among the rows. In an overwrite nothing committed stays; a strict
    write replaces nothing. `claimed` are ids of rows that were refused already: an edge to one of
    them is no mistake of its own.
    """

    type: GraphType
    rows: pa.Table
    deleted: pa.StringArray
    is_overwrite: bool = False
    is_strict: bool = False
    claimed: pa.StringArray = field(default_factory=lambda: pa.array([], pa.utf8()))
    settled: np.ndarray | None = None
    """True for rows of whose unique values it is known that no committed row but theirs has them;
    None: of no row."""
    attached: np.ndarray | None = None
    """True for edges that are committed with the same ends: nodes are there; None: for no edge."""
    has_distinct_ids: bool = False
    """The rows are known to have an id each."""


def key_columns(type: GraphType) -> tuple[str, ...]:
    """The columns that rules about several rows look at: implicit ones and unique groups."""
    implicit = NODE_IMPLICIT if isinstance(type, NodeType) else EDGE_IMPLICIT
    grouped = (column for group in type.unique for column in group)
    return tuple(dict.fromkeys((*implicit, *grouped)))


class Part:
    """The part of a write that concerns one table, while it is checked.

    A reported row is out: the write is refused, or checked again without it. Until then neither it
    nor the committed row that it would replace takes a value or a place from others.
    """

    __slots__ = ("_replaces", "delta", "doubted", "doubtful", "findings", "known", "touched")

    def __init__(self, delta: TableDelta, places: Places, violations: Violations) -> None:
        self.delta = delta
        self.findings = Findings(delta.type.name, delta.rows, places, violations)
        fresh = delta.rows.column(FRESH).to_numpy()
        self.known = ~fresh
        """Rows whose id somebody may have."""
        self._replaces = np.zeros_like(fresh) if delta.is_strict else self.known
        replaced = self.replaced_by(self.known)
        self.touched = pa.chunked_array([*replaced.chunks, delta.deleted], pa.utf8())
        """Ids that may be committed and do not stay as they are."""
        self.doubted = pa.chunked_array([], pa.utf8())
        """Ids of rows that were reported for a value: edges may end there, but may go with them."""
        self.doubtful: np.ndarray | None = None
        """Edges at doubted nodes."""

    @property
    def counted(self) -> np.ndarray:
        """Rows that take part in the rules to come: not reported so far, and not doubtful."""
        counted = np.ones(self.rows.num_rows, dtype=bool)
        for out in (self.findings.bad, self.doubtful):
            if out is not None:
                counted &= ~out
        return counted

    @property
    def table_key(self) -> str:
        return self.delta.type.table_key

    @property
    def rows(self) -> pa.Table:
        return self.delta.rows

    @property
    def ids(self) -> pa.ChunkedArray:
        """The ids of its rows, and those claimed."""
        rows = self.rows.column("id")
        return pa.chunked_array([*rows.chunks, self.delta.claimed], pa.utf8())

    def replaced_by(self, rows: np.ndarray) -> pa.ChunkedArray:
        """Ids of these rows that may be committed and are replaced if they are."""
        return chosen(self.rows.column("id"), self._replaces & rows)

    def staying(self, committed: pa.Table) -> pa.Table:
        """Those of the committed rows that are as they were after the write."""
        if self.delta.is_overwrite:
            return committed.slice(0, 0)
        if not committed.num_rows or not len(self.touched):
            return committed
        touched = pc.is_in(committed.column("id"), value_set=self.touched)
        return committed.filter(pc.invert(touched))
