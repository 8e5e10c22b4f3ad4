"""One snapshot as a query sees it: tables by dense number, adjacency and words, from the caches.

Nothing is read until it is asked for. What was derived from a table is kept under the table's
physical version, so branches and commits that share a version share it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.storage.dataset import EMPTY_VERSION
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.links import Links, links_of
from omnigraph_core.topology.postings import Postings, postings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.derived import DerivedFiles
    from omnigraph_core.topology.memory import ByteCache


class GraphData:
    """A snapshot's tables and what is derived from them. Made for one query; not shared."""

    __slots__ = (
        "_context",
        "_edges",
        "_links",
        "_nodes",
        "cache",
        "catalog",
        "derived",
        "snapshot",
    )

    def __init__(
        self,
        context: GraphContext,
        snapshot: Snapshot,
        catalog: Catalog,
        cache: ByteCache,
        derived: DerivedFiles | None,
    ) -> None:
        self._context = context
        self.snapshot = snapshot
        self.catalog = catalog
        self.cache = cache
        self.derived = derived
        self._nodes: dict[str, DenseTable] = {}
        self._edges: dict[str, DenseTable] = {}
        self._links: dict[str, Links] = {}

    def nodes(self, type_name: str) -> DenseTable:
        """The table of a node type."""
        found = self._nodes.get(type_name)
        if found is None:
            found = self._nodes[type_name] = self._dense(node_table_key(type_name))
        return found

    def edges(self, type_name: str) -> DenseTable:
        """The table of an edge type."""
        found = self._edges.get(type_name)
        if found is None:
            found = self._edges[type_name] = self._dense(edge_table_key(type_name))
        return found

    def links(self, edge_type: str) -> Links:
        """Who is linked to whom by an edge type."""
        found = self._links.get(edge_type)
        if found is None:
            declared = self.catalog.edges[edge_type]
            edges = self.edges(edge_type)
            ends = self.nodes(declared.source), self.nodes(declared.target)
            found = links_of(edges, *ends, self.cache, self.derived)
            self._links[edge_type] = found
        return found

    def words(self, dense: DenseTable, property: str, check: Callable[[], None]) -> Postings:
        """The words of a text property of all rows of a table.

        Args:
            check: asked between portions of a long analysis; it may raise.
        """
        return postings_of(dense, property, self.cache, self.derived, check)

    def _dense(self, table_key: str) -> DenseTable:
        entry = self.snapshot.table(table_key)
        location, version = entry.location, entry.physical_version

        def opened() -> DenseTable:
            return DenseTable(self._context.table(location, version), self.cache)

        if version == EMPTY_VERSION:
            # Every table begins with this number, also one made later at the same place.
            return opened()
        key = ("dense", self._context.store.root.text, location, version)
        return self.cache.get_of_version(key, opened, lambda dense: dense.table.nbytes)
