"""Graphs for the oracle: plain nodes and edges, and what can be reached from where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph_core.query.checked import Direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.values import Value


@dataclass(frozen=True)
class Node:
    """A stored node; two nodes are the same if type and id are."""

    type: str
    id: str
    properties: Mapping[str, Value] = field(default_factory=dict, compare=False)

    def get(self, name: str) -> Value:
        return self.id if name == "id" else self.properties.get(name)


@dataclass(frozen=True)
class Edge:
    """A stored edge; `src` and `dst` are ids of the edge type's source and target nodes."""

    type: str
    id: str
    src: str
    dst: str
    properties: Mapping[str, Value] = field(default_factory=dict, compare=False)

    def get(self, name: str) -> Value:
        implicit = {"id": self.id, "src": self.src, "dst": self.dst}
        return implicit[name] if name in implicit else self.properties.get(name)


class OracleGraph:
    """Nodes and edges by type; an edge whose end is missing is stored but never followed."""

    def __init__(self, catalog: Catalog, nodes: Iterable[Node], edges: Iterable[Edge] = ()) -> None:
        self.catalog = catalog
        self.nodes: dict[str, dict[str, Node]] = {name: {} for name in catalog.nodes}
        for node in nodes:
            self.nodes[node.type][node.id] = node
        self.edges: dict[str, list[Edge]] = {name: [] for name in catalog.edges}
        for edge in edges:
            self.edges[edge.type].append(edge)

        self._hops: dict[tuple[str, Direction], list[tuple[Node, Node, Edge]]] = {}
        self._hop_sets: dict[tuple[str, Direction], frozenset[tuple[Node, Node, Edge]]] = {}

    def hops(self, edge_type: str, direction: Direction) -> list[tuple[Node, Node, Edge]]:
        """(from, to, edge) for each way the stored edges may be followed; a self-loop once."""
        key = (edge_type, direction)
        if key not in self._hops:
            self._hops[key] = list(self._iter_hops(edge_type, direction))
        return self._hops[key]

    def hop_set(self, edge_type: str, direction: Direction) -> frozenset[tuple[Node, Node, Edge]]:
        """The same, to ask whether there is one."""
        key = (edge_type, direction)
        if key not in self._hop_sets:
            self._hop_sets[key] = frozenset(self.hops(edge_type, direction))
        return self._hop_sets[key]

    def _iter_hops(self, edge_type: str, direction: Direction) -> Iterator[tuple[Node, Node, Edge]]:
        declared = self.catalog.edges[edge_type]
        for edge in self.edges[edge_type]:
            src = self.nodes[declared.source].get(edge.src)
            dst = self.nodes[declared.target].get(edge.dst)
            if src is None or dst is None:
                continue
            if direction in (Direction.OUT, Direction.BOTH):
                yield src, dst, edge
            if direction is Direction.IN or (direction is Direction.BOTH and src != dst):
                yield dst, src, edge

    def reached(
        self, start: Node, edge_type: str, direction: Direction, minimum: int, maximum: int
    ) -> set[Node]:
        """Nodes whose shortest distance is within the hops; the start only through a self-loop."""
        hops = [(near, far) for near, far, _ in self.hops(edge_type, direction)]
        found = {start} if minimum == 1 and (start, start) in hops else set[Node]()
        seen, frontier = {start}, {start}
        for distance in range(1, maximum + 1):
            frontier = {far for near, far in hops if near in frontier} - seen
            seen |= frontier
            if distance >= minimum:
                found |= frontier
        return found
