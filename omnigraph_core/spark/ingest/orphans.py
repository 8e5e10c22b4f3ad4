"""Committed edges that would lose an end when all nodes of a type are replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.spark.ingest.keys import OWN, SIDES, end_name
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.write.endpoints import report_orphans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from omnigraph_core.schema.catalog import NodeType
    from omnigraph_core.spark.ingest.model import Job
    from omnigraph_core.violations import Violations


@dataclass(frozen=True, slots=True)
class Orphans:
    """Edges of one type that lose their ends at a side; the first of them by address."""

    node: str
    edge: str
    side: str
    count: int
    first: pa.Table
    """The lost end as `id`, the edge's own id, and its address."""


def find_orphans(
    job: Job,
    node: NodeType,
    loaded: Collection[str],
    ids: pa.Table,
    committed: Mapping[str, pa.Table],
) -> Iterator[Orphans]:
    """The edges in a bucket whose ends are not among the ids that the node type will have.

    Args:
        loaded: keys of tables whose rows are all replaced.
    """
    for edge in job.catalog.edges.values():
        if edge.table_key in loaded:
            continue
        for side, end in (("src", edge.source), ("dst", edge.target)):
            edges = committed.get(end_name(edge.table_key, side))
            if end != node.name or edges is None:
                continue
            stays = pc.is_in(edges.column("id"), value_set=ids.column("id"))
            lost = edges.filter(pc.invert(stays))
            if lost.num_rows:
                first = lost.sort_by(ADDRESS).slice(0, job.listed)
                yield Orphans(node.name, edge.name, side, lost.num_rows, first)


def report_all(job: Job, found: Sequence[Orphans], violations: Violations) -> None:
    """Report the orphans of all buckets, in the order of the schema."""
    for node in job.catalog.nodes.values():
        for edge in job.catalog.edges.values():
            for side in SIDES:
                same = [
                    part
                    for part in found
                    if (part.node, part.edge, part.side) == (node.name, edge.name, side)
                ]
                if same:
                    first = pa.concat_tables([part.first for part in same]).sort_by(ADDRESS)
                    listed = first.select([OWN, "id"]).rename_columns(["id", side])
                    count = sum(part.count for part in same)
                    report_orphans(edge.name, side, node.name, listed, count, violations)
