"""Counts of a graph that nobody has to make, for reports on plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.plan.estimate import IndexFact


@dataclass(frozen=True)
class FixedStats:
    """Every node type has as many rows as every other, and so has every edge type."""

    nodes: int = 1_000
    edges: int = 10_000
    distinct: Mapping[str, int] = field(default_factory=dict)
    """By property."""
    large: frozenset[str] = frozenset()
    """Properties whose columns are too big for memory."""
    indexed: Mapping[str, tuple[IndexFact, ...]] = field(default_factory=dict)

    def node_count(self, type_name: str) -> int:
        return self.nodes

    def edge_count(self, edge_type: str) -> int:
        return self.edges

    def distinct_count(self, type_name: str, property: str) -> int | None:
        return self.distinct.get(property)

    def is_kept(self, type_name: str, property: str) -> bool:
        return property not in self.large

    def indexes(self, type_name: str, property: str) -> tuple[IndexFact, ...]:
        return self.indexed.get(property, ())
