"""The input beside the committed rows: keys of both meet behind Spark's shuffle."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.ingest.inspect import Inspection
from omnigraph_core.spark.ingest.keys import (
    SIDES,
    Emission,
    dtype_of,
    end_name,
    graph_type,
    id_name,
    limits_sources,
    needs_sources,
    owner_name,
    start_name,
    table_tasks,
    unique_name,
)
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.spark.ingest.inspect import Inspected
    from omnigraph_core.spark.ingest.keys import PartKeys, TableKeys
    from omnigraph_core.spark.ingest.model import Job, PartRead
    from omnigraph_core.spark.runner import Runner

_MANY_TIMES: Final = 20
"""Committed rows for each row of the input, from which they are looked up one by one."""
_PARTITION_BYTES: Final = 32 << 20
"""Of keys that one task looks at."""
_LEAST_PARTITIONS: Final = 4
_MOST_PARTITIONS: Final = 10_000
"""Beyond, blocks become so small that the shuffle costs more than the look at them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What all partitions found."""

    loaded: tuple[str, ...]
    inspected: Sequence[Inspected]
    looked_at: frozenset[str]
    """The keys of committed tables that this was found out from."""

    @property
    def is_suspicious(self) -> bool:
        return any(f.suspects or f.lost_sources or f.orphans for f in self.inspected)

    def removed(self, table_key: str) -> int:
        """How many committed rows the input replaces."""
        return sum(found.removed[table_key] for found in self.inspected)

    def replaced(self, table_key: str) -> int:
        """How many rows of the input later ones replace."""
        return sum(found.replaced[table_key] for found in self.inspected)

    def objects(self, name: str) -> list[str]:
        """The objects that have a table of that name."""
        return [found.name for found in self.inspected if name in found.tables]


def compare_with_committed(
    job: Job,
    read: Sequence[PartRead],
    keys: Sequence[PartKeys],
    snapshot: Snapshot,
    runner: Runner,
    *,
    only: Collection[str] | None = None,
) -> Comparison:
    """Look at the keys of the input, beside the rows of a state.

    Args:
        keys: of all parts, in their order.
        only: the keys of tables whose rows are looked at; by default all that are loaded.
    """
    loaded = loaded_tables(read)
    chosen = tuple(key for key in loaded if only is None or key in only)
    if not chosen:
        return Comparison(loaded, (), frozenset())
    wanted = wanted_keys(job, loaded, chosen, _known(read))
    filled = {key: names for key, names in wanted.items() if snapshot.table(key).row_count}
    is_looked_up = _is_small(job, read, snapshot, filled)
    versions = {
        key: (entry.location, entry.physical_version) for key, entry in snapshot.tables.items()
    }
    tasks: list[PartKeys | TableKeys] = list(keys)
    if not is_looked_up:
        for key, names in sorted(filled.items()):
            tasks += table_tasks(key, job.open_at(*versions[key]), names)
    emission = Emission(
        job,
        _partitions(job, read, chosen, {} if is_looked_up else filled, snapshot),
        versions,
        filled if is_looked_up else {},
        chosen,
        _ends_of(job, chosen),
    )
    inspection = Inspection(job, loaded, chosen)
    inspected = runner.exchange(
        emission.blocks, tasks, inspection, emission.partitions, name="compare keys"
    )
    return Comparison(loaded, inspected, frozenset(wanted))


def tables_looked_at(job: Job, read: Sequence[PartRead], chosen: Collection[str]) -> frozenset[str]:
    """The keys of the committed tables that decide about rows of these tables."""
    return frozenset(wanted_keys(job, loaded_tables(read), chosen, _known(read)))


def _known(read: Sequence[PartRead]) -> Counter[str]:
    """By table key the rows whose id somebody may have."""
    known: Counter[str] = Counter()
    for part in read:
        known.update(part.known)
    return known


def _ends_of(job: Job, chosen: Collection[str]) -> frozenset[str]:
    """The keys of the tables that edges of the chosen ones end at."""
    edges = [edge for edge in job.catalog.edges.values() if edge.table_key in chosen]
    names = {name for edge in edges for name in (edge.source, edge.target)}
    return frozenset(job.catalog.nodes[name].table_key for name in names)


def loaded_tables(read: Sequence[PartRead]) -> tuple[str, ...]:
    """The keys of all tables that the input has records for."""
    return tuple(dict.fromkeys(key for part in read for key in part.types))


def _is_small(
    job: Job, read: Sequence[PartRead], snapshot: Snapshot, filled: Mapping[str, object]
) -> bool:
    if job.mode is LoadMode.OVERWRITE:
        return False
    given = sum(sum(part.rows.values()) for part in read)
    return given * _MANY_TIMES < sum(snapshot.table(key).row_count for key in filled)


def _partitions(
    job: Job,
    read: Sequence[PartRead],
    chosen: Collection[str],
    whole: Mapping[str, Sequence[str]],
    snapshot: Snapshot,
) -> int:
    """How many tasks look at keys: as many as there are portions of a good size."""
    size = 0
    for part in read:
        for key, rows in part.rows.items():
            if key not in chosen:
                continue
            type = graph_type(job, key)
            names = [id_name(key)]
            if isinstance(type, EdgeType):
                names += [end_name(key, side) for side in SIDES]
            if limits_sources(type):
                names += [owner_name(key), start_name(key)]
            names += [unique_name(key, number) for number in range(len(type.unique))]
            size += rows * sum(dtype_of(name).itemsize for name in names)
    for key, wanted in whole.items():
        rows = snapshot.table(key).row_count
        size += rows * sum(dtype_of(f"committed {name}").itemsize for name in wanted)
    return min(max(-(-size // _PARTITION_BYTES), _LEAST_PARTITIONS), _MOST_PARTITIONS)


def wanted_keys(
    job: Job, loaded: Collection[str], chosen: Collection[str], known: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """By table key the keys of committed rows that a load has to see.

    Args:
        loaded: the keys of the tables it has rows for.
        chosen: those of them that are looked at.
        known: by table key the rows whose id may be there.
    """
    wanted: dict[str, dict[str, None]] = defaultdict(dict)
    for key, name in _wanted(job, loaded, chosen, known):
        wanted[key][name] = None
    return {key: tuple(names) for key, names in wanted.items()}


def _wanted(
    job: Job, loaded: Collection[str], chosen: Collection[str], known: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    is_overwrite = job.mode is LoadMode.OVERWRITE
    for key in chosen:
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
        yield from _ends_of_replaced(job, loaded, chosen)


def _ends_of_replaced(
    job: Job, loaded: Collection[str], chosen: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Ends of edges that stay, at nodes that may not."""
    for edge in job.catalog.edges.values():
        for side, end in (("src", edge.source), ("dst", edge.target)):
            if edge.table_key not in loaded and job.catalog.nodes[end].table_key in chosen:
                yield edge.table_key, end_name(edge.table_key, side)
