"""The rules that rows keep together: what a write does to tables comes in, bad rows go out.

Keys, unique groups, ends of edges, orphans and cardinality, against the state after the write: rows
of the write and the committed rows that stay. Each problem is reported once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.write.cardinality import check_cardinality
from omnigraph_core.write.delta import Part, TableDelta, key_columns
from omnigraph_core.write.endpoints import check_endpoints, check_orphans
from omnigraph_core.write.unique import check_keys, check_unique

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import Places
    from omnigraph_core.write.view import CommittedView

__all__ = ["TableDelta", "check_delta", "key_columns"]


def check_delta(
    deltas: Mapping[str, TableDelta],
    catalog: Catalog,
    view: CommittedView,
    places: Places,
    violations: Violations,
    *,
    report_orphans: Callable[[], None] | None = None,
) -> Mapping[str, pa.BooleanArray]:
    """Report what the tables would break after the write.

    Args:
        report_orphans: reports committed edges that lose a node, if these are known: finding them
            takes all rows of a write, the other rules only those that share a value.

    Returns:
        By table key, True for every row that takes part in a problem; only tables that have any.
    """
    parts = {
        key: Part(deltas[key], places, violations)
        for key in (
            *(node.table_key for node in catalog.nodes.values()),
            *(edge.table_key for edge in catalog.edges.values()),
        )
        if key in deltas
    }
    # Reported rows do not count in the rules after: of two rows with one value, or one place left,
    # the good one must not be refused because of the bad one.
    nodes = [part for part in parts.values() if isinstance(part.delta.type, NodeType)]
    edges = [part for part in parts.values() if isinstance(part.delta.type, EdgeType)]
    for part in nodes:
        check_keys(part, view)
        check_unique(part, view)
    for part in edges:
        check_keys(part, view)
    check_endpoints(parts, catalog, view)
    for part in edges:
        check_unique(part, view)
    if report_orphans is None:
        check_orphans(parts, catalog, view, violations)
    else:
        report_orphans()
    for edge in catalog.edges.values():
        if edge.table_key in parts:
            sources = parts.get(catalog.nodes[edge.source].table_key)
            check_cardinality(edge, parts[edge.table_key], sources, view, violations)
    return {
        key: pa.array(part.findings.bad)
        for key, part in parts.items()
        if part.findings.bad is not None
    }
