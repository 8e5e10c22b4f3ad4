"""Topology by executors: the links of edge types that are too large for one process to make.

A reader of the newest commit then maps the file instead of resolving the ids of all edges. Nothing
but files beside the graph is written, and they appear whole; a job that is lost leaves scratch
objects, which cleanup removes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core import settings
from omnigraph_core.constants import DERIVED_MIN_ROWS
from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import new_ulid, node_table_key
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.spark.maintain.link_file import KIND, LinkTables, keep_links, links_key
from omnigraph_core.spark.maintain.link_tasks import (
    ENDS,
    SOURCE,
    TARGET,
    Plan,
    Portion,
    arrange_range,
    emit_ends,
    emit_entries,
    emit_ids,
    resolve,
    settle,
)
from omnigraph_core.storage.derived import DerivedFiles
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.spark.maintain.link_tasks import Arranged
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table

PART_ROWS: Final = 1 << 20
"""Rows that one task holds."""

_MOST_PARTS: Final = 1 << 15
_MOST_NUMBERS: Final = 2**31 - 1
"""Rows of a table beyond which they cannot be numbered."""

_LASTING: Final = timedelta(days=1)


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


def build_topology_on(
    graph: Omnigraph,
    runner: Runner,
    *,
    branch: str = MAIN,
    edge_types: Sequence[str] = (),
    part_rows: int = PART_ROWS,
) -> tuple[TopologyReport, ...]:
    """Make the links of edge types at the newest commit of a branch, as files beside the graph.

    Args:
        edge_types: names of the only ones to make; by default all.
        part_rows: rows that one task holds.

    Raises:
        BranchNotFound: there is none of that name.
        ConfigError: no such edge type, files beside graphs are switched off, or a table has more
            rows than can be numbered.
        JobFailed: a task could not be carried out; no file was written for its edge type.
    """
    snapshot = graph.snapshot(branch)
    catalog = accepted_catalog(snapshot.schema)
    unknown = [name for name in edge_types if catalog.try_edge(name) is None]
    if unknown:
        known = ", ".join(catalog.edges) or "none"
        raise ConfigError(f"no edge type `{'`, `'.join(unknown)}`", hint=f"there are: {known}")
    if not settings.DERIVED_FILES.read():
        raise ConfigError(
            "files beside graphs are switched off", hint=f"see {settings.DERIVED_FILES.name}"
        )
    chosen = [catalog.try_edge(name) for name in edge_types] or list(catalog.edges.values())
    reports = []
    with graph.hold(snapshot, purpose="topology", lasting=_LASTING):
        for edge in chosen:
            if edge is not None:
                keys = (edge.table_key, node_table_key(edge.source), node_table_key(edge.target))
                tables = LinkTables(*(graph.table(snapshot, key) for key in keys))
                outcome, count = _built(runner, tables, part_rows)
                reports.append(TopologyReport(edge.table_key, count, outcome))
    return tuple(reports)


def _built(runner: Runner, tables: LinkTables, part_rows: int) -> tuple[TopologyOutcome, int]:
    counts = [table.count_rows() for table in tables.all]
    for table, count in zip(tables.all, counts, strict=True):
        if count > _MOST_NUMBERS:
            raise ConfigError(f"`{table.location}` has {count:,} rows: too many to be numbered")
    if counts[0] < DERIVED_MIN_ROWS.value:
        return TopologyOutcome.SMALL, counts[0]
    files = DerivedFiles(tables.edges.store)
    if files.about(KIND, links_key(tables)) is not None:
        return TopologyOutcome.KEPT, counts[0]
    scratch = Scratch(tables.edges.store, new_ulid())
    try:
        _build(runner, files, tables, scratch, _plan(tables, scratch, counts, part_rows))
    finally:
        scratch.clear()
    return TopologyOutcome.BUILT, counts[0]


def _plan(tables: LinkTables, scratch: Scratch, counts: Sequence[int], part_rows: int) -> Plan:
    edges, sources, targets = counts
    parts = min(_MOST_PARTS, -(-edges // part_rows))
    edge_range = -(-edges // parts)
    is_one = TablePlace.of(tables.sources) == TablePlace.of(tables.targets)
    return Plan(
        root=tables.edges.store.root.text,
        job=scratch.job,
        id_parts=min(_MOST_PARTS, -(-(2 * edges + sources + targets) // part_rows)),
        edge_count=edges,
        edge_range=edge_range + edge_range % 2,
        node_counts={SOURCE: sources, TARGET: targets},
        node_ranges={SOURCE: max(1, -(-sources // parts)), TARGET: max(1, -(-targets // parts))},
        node_sections={SOURCE: 2, TARGET: 2 if is_one else 3},
    )


def _build(
    runner: Runner, files: DerivedFiles, tables: LinkTables, scratch: Scratch, plan: Plan
) -> None:
    resolved = runner.exchange(
        partial(emit_ids, plan),
        list(_portions(plan, tables)),
        partial(resolve, plan),
        plan.id_parts,
        name="resolve ends",
    )
    settled = runner.exchange(
        partial(emit_ends, plan),
        [name for name in resolved if name is not None],
        partial(settle, plan),
        plan.edge_parts,
        name="settle edges",
    )

    def arranged(near: str, name: str) -> list[Arranged]:
        emit, meet = partial(emit_entries, plan, near), partial(arrange_range, plan, near)
        return runner.exchange(emit, settled, meet, plan.node_parts(near), name=name)

    out, into = arranged(SOURCE, "neighbours out"), arranged(TARGET, "neighbours in")
    keep_links(files, tables, scratch, settled, out, into)


def _portions(plan: Plan, tables: LinkTables) -> Iterator[Portion]:
    """All rows with ids that are to meet."""
    yield from _cut(tables.edges, ENDS, plan.edge_range)
    nodes = zip(ENDS, (tables.sources, tables.targets), strict=True)
    for section, table in {plan.node_sections[end]: table for end, table in nodes}.items():
        yield from _cut(table, {"id": section}, plan.edge_range)


def _cut(table: Table, columns: Mapping[str, int], most_rows: int) -> Iterator[Portion]:
    """The fragments of a table in groups, each with the number of its first row."""
    place = TablePlace.of(table)
    group: list[int] = []
    first = rows = 0
    for state in fragment_states(table):
        if group and rows + state.rows > most_rows:
            yield Portion(place, columns, tuple(group), first)
            first, rows, group = first + rows, 0, []
        group.append(state.id)
        rows += state.rows
    if group:
        yield Portion(place, columns, tuple(group), first)
