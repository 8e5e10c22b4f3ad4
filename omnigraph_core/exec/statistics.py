"""What `explain` may know about a snapshot: counts, indexes and what memory holds, no rows.

Everything comes from the catalog's image and the tables' metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.plan.estimate import IndexFact
from omnigraph_core.storage.indexes import index_coverage

if TYPE_CHECKING:
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.storage.indexes import IndexCoverage


class GraphStats:
    """The `Stats` of one snapshot; made for one report."""

    def __init__(self, graph: GraphData) -> None:
        self._graph = graph
        self._coverage: dict[str, tuple[IndexCoverage, ...]] = {}

    def node_count(self, type_name: str) -> int:
        return self._graph.snapshot.table(node_table_key(type_name)).row_count

    def edge_count(self, edge_type: str) -> int:
        return self._graph.snapshot.table(edge_table_key(edge_type)).row_count

    def distinct_count(self, type_name: str, property: str) -> int | None:
        """Known where the column's distinct values are in memory already."""
        dense = self._graph.nodes(type_name)
        kept = self._graph.cache.peek(("codes", dense.identity, property))
        return len(dense.codes(property)[1]) if kept is not None else None

    def is_kept(self, type_name: str, property: str) -> bool:
        """Whether the column is in memory, or small enough to be."""
        dense = self._graph.nodes(type_name)
        return dense.is_resident(property) or dense.fits(property)

    def indexes(self, type_name: str, property: str) -> tuple[IndexFact, ...]:
        """The indexes of a column as they are at this snapshot."""
        if type_name not in self._coverage:
            self._coverage[type_name] = index_coverage(self._graph.nodes(type_name).table)
        rows = self.node_count(type_name)
        return tuple(
            IndexFact(found.kind.value, rows - found.unindexed_rows)
            for found in self._coverage[type_name]
            if found.columns == (property,)
        )
