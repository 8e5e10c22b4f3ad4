"""Ends of edges: after the write every edge starts and ends at a node that is there.

New edges are looked at from their side, nodes that go away from the other: the committed edges that
stay must not need them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.findings import shortened
from omnigraph_core.write.tuples import chosen, distinct, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.delta import Part
    from omnigraph_core.write.view import CommittedView


def check_endpoints(parts: Mapping[str, Part], catalog: Catalog, view: CommittedView) -> None:
    """Report edges of the write without a node at an end, and note those at a doubted one.

    Every node table is asked once, for the ends of all edge types together.
    """
    ends = [
        (part, side, node, catalog.nodes[node].table_key)
        for part in parts.values()
        if isinstance(part.delta.type, EdgeType) and part.rows.num_rows
        for side, node in _sides(part.delta.type)
    ]
    used: dict[str, list[pa.Array]] = defaultdict(list)
    attached: dict[str, list[pa.Array]] = defaultdict(list)
    for part, side, _, node_key in ends:
        column, is_attached = part.rows.column(side), part.delta.attached
        if is_attached is None:
            used[node_key] += column.chunks
        else:
            used[node_key] += chosen(column, ~is_attached).chunks
            attached[node_key] += chosen(column, is_attached).chunks
    missing = {}
    for node_key, chunks in used.items():
        nodes = parts.get(node_key)
        wanted = distinct(pa.chunked_array(chunks, pa.utf8()))
        known = distinct(pa.chunked_array(attached[node_key], pa.utf8()))
        missing[node_key] = pa.concat_arrays(
            [_missing(node_key, wanted, nodes, view), _leaving(known, nodes)]
        )
    for part, side, node, node_key in ends:
        _report_missing(part, side, node, missing[node_key])
        if node_key in parts:
            _note_doubtful(part, side, parts[node_key].doubted)


def _sides(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("src", edge.source), ("dst", edge.target)


def _missing(node_key: str, wanted: pa.Array, nodes: Part | None, view: CommittedView) -> pa.Array:
    """The wanted ids that no node has after the write."""
    if nodes is None:
        return wanted.filter(pc.invert(view.present(node_key, wanted)))
    unknown = without(wanted, nodes.ids)
    if nodes.delta.is_overwrite:
        return unknown
    sought = without(unknown, nodes.delta.deleted)
    found = sought.filter(view.present(node_key, sought))
    return without(unknown, found)


def _leaving(known: pa.Array, nodes: Part | None) -> pa.Array:
    """Those of committed ids that no node has after the write."""
    if nodes is None:
        return known.slice(0, 0)
    left = without(known, nodes.ids)
    if nodes.delta.is_overwrite:
        return left
    return left.filter(pc.is_in(left, value_set=nodes.delta.deleted))


def _report_missing(part: Part, side: str, node: str, missing: pa.Array) -> None:
    if not len(missing):
        return
    column = part.rows.column(side)
    wrong = pc.indices_nonzero(pc.is_in(column, value_set=missing)).to_numpy()
    edge = part.delta.type.name

    def describe(row: int) -> tuple[str, object]:
        value = shortened(column[row].as_py())
        id = part.findings.given_id(row)
        named = edge if id is None else f"{edge} {shortened(id)!r}"
        return f"{side} {value!r} not found in {node} (edge {named})", value

    part.findings.report(Rule.ENDPOINT, wrong, describe, property=side)


def _note_doubtful(part: Part, side: str, doubted: pa.ChunkedArray) -> None:
    if len(doubted):
        doubtful = pc.is_in(part.rows.column(side), value_set=doubted).to_numpy()
        part.doubtful = doubtful if part.doubtful is None else part.doubtful | doubtful


def check_orphans(
    parts: Mapping[str, Part], catalog: Catalog, view: CommittedView, violations: Violations
) -> None:
    """Report committed edges that stay although a node they need goes away."""
    for nodes in parts.values():
        if not isinstance(nodes.delta.type, NodeType):
            continue
        leaving = _Leaving(nodes, view)
        for edge in catalog.edges.values():
            sides = [side for side, node in _sides(edge) if node == nodes.delta.type.name]
            edges = parts.get(edge.table_key)
            if sides and not (edges is not None and edges.delta.is_overwrite):
                for side, orphans in leaving.orphans(edge, sides, edges):
                    report_orphans(
                        edge.name,
                        side,
                        nodes.delta.type.name,
                        orphans,
                        orphans.num_rows,
                        violations,
                    )


class _Leaving:
    """The nodes of one table that go away, and who needs them."""

    def __init__(self, nodes: Part, view: CommittedView) -> None:
        self._nodes = nodes
        self._view = view
        self._ids = None if nodes.delta.is_overwrite else nodes.delta.deleted

    def orphans(
        self, edge: EdgeType, sides: Sequence[str], edges: Part | None
    ) -> Iterator[tuple[str, pa.Table]]:
        """For each side the edges that stay and lose that end."""
        if self._ids is None and self._is_edge_side_cheaper(edge):
            yield from self._by_edges(edge, sides, edges)
            return
        if self._ids is None:
            committed = self._view.scan(self._nodes.table_key, ("id",)).column("id")
            self._ids = without(distinct(committed), self._nodes.ids)
        for side in sides if len(self._ids) else ():
            found = self._view.rows(edge.table_key, side, self._ids, ("id", side))
            yield side, found if edges is None else edges.staying(found)

    def _is_edge_side_cheaper(self, edge: EdgeType) -> bool:
        """Whether the edges are fewer than the nodes that were there."""
        edge_count = self._view.count(edge.table_key)
        return not edge_count or edge_count <= self._view.count(self._nodes.table_key)

    def _by_edges(
        self, edge: EdgeType, sides: Sequence[str], edges: Part | None
    ) -> Iterator[tuple[str, pa.Table]]:
        if not self._view.count(edge.table_key):
            return
        found = self._view.scan(edge.table_key, ("id", *sides))
        staying = found if edges is None else edges.staying(found)
        ids = self._nodes.ids
        for side in sides:
            has_node = pc.is_in(staying.column(side), value_set=ids)
            yield side, staying.filter(pc.invert(has_node))


def report_orphans(
    edge: str, side: str, node: str, orphans: pa.Table, count: int, violations: Violations
) -> None:
    """Report committed edges that lose an end.

    Args:
        orphans: the first of them, with `id` and the side.
        count: how many there are.
    """
    listed = orphans.slice(0, violations.room)
    for id, lost in zip(*(listed.column(name).to_pylist() for name in ("id", side)), strict=True):
        message = (
            f"{side} {shortened(lost)!r} not found in {node}: "
            f"edge {edge} {shortened(id)!r} stays and would lose it"
        )
        violations.add(Violation(Rule.ORPHAN, message, edge, side, shortened(lost), id))
    violations.count(Rule.ORPHAN, count - listed.num_rows)
