"""Topology by executors: the links of edge types that are too large for one process to make.

Nothing but a file beside the graph is written, and it appears whole; a job that is lost leaves
scratch objects, which cleanup removes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.ids import new_ulid
from omnigraph_core.spark.maintain.link_file import keep_links
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
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.spark.maintain.link_tasks import Arranged
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.link_files import LinkTables

_MOST_PARTS: Final = 1 << 15


def build_links(runner: Runner, tables: LinkTables, *, part_rows: int) -> None:
    """Make the links of an edge type, as a file beside the graph.

    Args:
        part_rows: rows that one task holds.

    Raises:
        JobFailed: a task could not be carried out; no file was written.
    """
    scratch = Scratch(tables.edges.store, new_ulid())
    try:
        _build(runner, tables, scratch, _plan(tables, scratch, part_rows))
    finally:
        scratch.clear()


def _plan(tables: LinkTables, scratch: Scratch, part_rows: int) -> Plan:
    edges, sources, targets = (table.count_rows() for table in tables.all)
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


def _build(runner: Runner, tables: LinkTables, scratch: Scratch, plan: Plan) -> None:
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
    keep_links(tables, scratch, settled, out, into)


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
