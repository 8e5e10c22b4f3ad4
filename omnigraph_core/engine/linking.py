"""Topology ahead of reads: the links of edge types as files beside the graph.

A reader of the same commit then maps the file instead of resolving the ids of all edges. It is the
file that the reader would have written; nothing else is, and it appears whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import DERIVED_MIN_ROWS
from omnigraph_core.engine.protection import hold
from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.exec.graph_data import GraphData
from omnigraph_core.ids import node_table_key
from omnigraph_core.job_report import job_facts
from omnigraph_core.settings import DERIVED_FILES
from omnigraph_core.topology.link_files import KIND, LinkTables
from omnigraph_core.topology.links import keep_links
from omnigraph_core.topology.memory import shared_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.engine.workers import Workers
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.storage.derived import DerivedFiles

_LASTING: Final = timedelta(days=1)
_MOST_NUMBERS: Final = 2**31 - 1
"""Rows of a table beyond which they cannot be numbered."""


class TopologyOutcome(StrEnum):
    BUILT = "built"
    KEPT = "kept"
    """The file is there already."""
    SMALL = "small"
    """Readers make the links of so few edges for themselves, and keep no file."""


@dataclass(frozen=True, slots=True)
class TopologyReport:
    """What became of the links of one edge type."""

    table_key: str
    edges: int
    outcome: TopologyOutcome

    def to_json(self) -> dict[str, object]:
        return {"table_key": self.table_key, "edges": self.edges, "outcome": str(self.outcome)}


def build_topology(
    context: GraphContext,
    files: DerivedFiles,
    branch: str,
    edge_types: Sequence[str] = (),
    *,
    workers: Workers | None = None,
) -> tuple[TopologyReport, ...]:
    """Make the links of edge types at the newest commit of a branch.

    Args:
        edge_types: names of the only ones to make; by default all.
        workers: who makes them; by default this process.

    Raises:
        BranchNotFound: there is none of that name.
        ConfigError: no such edge type, files beside graphs are switched off, or a table has more
            rows than can be numbered.
        StorageError: a file cannot be written.
    """
    snapshot = context.head(branch)[1].snapshot
    catalog = accepted_catalog(snapshot.schema)
    found = {name: catalog.try_edge(name) for name in edge_types or catalog.edges}
    unknown = [name for name, edge in found.items() if edge is None]
    if unknown:
        known = ", ".join(catalog.edges) or "none"
        raise ConfigError(f"no edge type `{'`, `'.join(unknown)}`", hint=f"there are: {known}")
    if not DERIVED_FILES.read():
        raise ConfigError("files beside graphs are switched off", hint=f"see {DERIVED_FILES.name}")
    with hold(context.store, snapshot, purpose="topology", lasting=_LASTING):
        graph = GraphData(context, snapshot, catalog, shared_cache(), files)
        edges = [edge for edge in found.values() if edge is not None]
        return tuple(_build(context, files, graph, edge, workers) for edge in edges)


def _build(
    context: GraphContext,
    files: DerivedFiles,
    graph: GraphData,
    edge: EdgeType,
    workers: Workers | None,
) -> TopologyReport:
    keys = (edge.table_key, node_table_key(edge.source), node_table_key(edge.target))
    entries = [graph.snapshot.table(key) for key in keys]
    count = entries[0].row_count
    if count < DERIVED_MIN_ROWS.value:
        return TopologyReport(edge.table_key, count, TopologyOutcome.SMALL)
    for entry in entries:
        if entry.row_count > _MOST_NUMBERS:
            told = f"`{entry.table_key}` has {entry.row_count:,} rows: too many to be numbered"
            raise ConfigError(told)
    tables = LinkTables(*(context.table(item.location, item.physical_version) for item in entries))
    if files.about(KIND, tables.key) is not None:
        return TopologyReport(edge.table_key, count, TopologyOutcome.KEPT)
    if workers is not None:
        commit_id = graph.snapshot.commit.graph_commit_id
        with job_facts(commit=commit_id, type=edge.table_key):
            workers.link(tables)
    else:
        ends = graph.nodes(edge.source), graph.nodes(edge.target)
        keep_links(graph.edges(edge.name), *ends, graph.cache, files)
    if files.about(KIND, tables.key) is None:
        raise StorageError(f"the links of `{edge.table_key}` could not be kept beside the graph")
    return TopologyReport(edge.table_key, count, TopologyOutcome.BUILT)
