"""The test of a closing expand: are the two ends of each row linked?

Chooses by the number of rows between looking each pair up, a flag per neighbour of an end that all
rows share, and a table of hashed pairs, which is kept for later queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from omnigraph_core.exec.pairs import PairTable, among, are_linked, pair_table
from omnigraph_core.query.checked import Direction

if TYPE_CHECKING:
    from collections.abc import Hashable

    from omnigraph_core.exec.context import Run
    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.topology.neighbours import Neighbours

_FEW_ROWS: Final = 64
_TABLE_SHARE: Final = 16
"""Making the table costs about as much as looking up this share of all edges."""
_TURNED: Final = {
    Direction.OUT: Direction.IN,
    Direction.IN: Direction.OUT,
    Direction.BOTH: Direction.BOTH,
}


class LinkTest:
    """Which pairs one edge type links in one hop; asked many times in one run."""

    __slots__ = ("_asked", "_op", "_run", "_table")

    def __init__(self, run: Run, op: Expand) -> None:
        self._run = run
        self._op = op
        self._table: PairTable | None = None
        self._asked = 0

    def holds(self, neighbours: Neighbours, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Which targets are linked to the source beside them; none is null."""
        if len(sources) < _FEW_ROWS:
            return are_linked(neighbours, sources, targets)
        if _is_constant(sources):
            return among(neighbours, int(sources[0]), targets)
        if _is_constant(targets):
            links = self._run.graph.links(self._op.edge_type)
            return among(links.distinct(_TURNED[self._op.direction]), int(targets[0]), sources)
        table = self._worthwhile_table(neighbours, len(sources))
        if table is None:
            return are_linked(neighbours, sources, targets)
        likely = np.flatnonzero(table.may_hold(sources, targets))
        linked = np.zeros(len(sources), np.bool_)
        linked[likely] = are_linked(neighbours, sources.take(likely), targets.take(likely))
        return linked

    def _worthwhile_table(self, neighbours: Neighbours, row_count: int) -> PairTable | None:
        if self._table is None:
            key, cache = self._key(), self._run.graph.cache
            series = ("pairs", self._op.direction, self._run.graph.edges(self._op.edge_type).place)
            self._table = cast("PairTable | None", cache.peek(key))
            self._asked += row_count
            if self._table is None and self._asked * _TABLE_SHARE > neighbours.entry_count:
                build = lambda: pair_table(neighbours)  # noqa: E731
                self._table = cache.get_of_series(series, key, build, _size)
        return self._table

    def _key(self) -> Hashable:
        graph, name = self._run.graph, self._op.edge_type
        declared = graph.catalog.edges[name]
        tables = graph.edges(name), graph.nodes(declared.source), graph.nodes(declared.target)
        return ("pairs", self._op.direction, *(table.identity for table in tables))


def _is_constant(numbers: np.ndarray) -> bool:
    first = numbers[0]
    return bool(first == numbers[-1]) and bool((numbers == first).all())


def _size(table: PairTable) -> int:
    return table.nbytes
