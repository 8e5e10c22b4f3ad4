"""What a load has to be compared with: loaded tables come in, names of keys of tables go out.

See `keys` for the names. A table without rows is not asked.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.ingest.keys import (
    end_name,
    id_name,
    limits_sources,
    needs_sources,
    unique_name,
)
from omnigraph_core.spark.ingest.read_table import graph_type
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from omnigraph_core.spark.ingest.model import Job


def wanted_keys(
    job: Job, loaded: Collection[str], known: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """By table key the keys that a load has to see.

    Args:
        loaded: the keys of the tables it has rows for.
        known: by table key the rows whose id may be there.
    """
    wanted: dict[str, dict[str, None]] = defaultdict(dict)
    for key, name in _wanted(job, loaded, known):
        wanted[key][name] = None
    return {key: tuple(names) for key, names in wanted.items()}


def _wanted(
    job: Job, loaded: Collection[str], known: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    is_overwrite = job.mode is LoadMode.OVERWRITE
    for key in loaded:
        type = graph_type(job, key)
        if isinstance(type, EdgeType):
            for end in (type.source, type.target):
                node_key = job.catalog.nodes[end].table_key
                if not (is_overwrite and node_key in loaded):
                    yield node_key, id_name(node_key)
        if is_overwrite:
            if needs_sources(type):
                yield key, end_name(key, "src")
            continue
        if known.get(key):
            yield key, id_name(key)
        if limits_sources(type):
            yield key, end_name(key, "src")
        for number in range(len(type.unique)):
            yield key, unique_name(key, number)
    if is_overwrite:
        yield from _ends_of_replaced(job, loaded)


def _ends_of_replaced(job: Job, loaded: Collection[str]) -> Iterator[tuple[str, str]]:
    """Ends of edges that stay, at nodes that may not."""
    for edge in job.catalog.edges.values():
        for side, end in (("src", edge.source), ("dst", edge.target)):
            if edge.table_key not in loaded and job.catalog.nodes[end].table_key in loaded:
                yield edge.table_key, end_name(edge.table_key, side)
