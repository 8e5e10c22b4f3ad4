"""The ends of edges as numbers: an edge table and those of its nodes come in, int32 arrays go out.

An end that no node has is -1: such an edge leads nowhere until the node is there. Ids are read some
at a time, and only of the edges that are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.interruption import pause
from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.storage.row_space import read_fragments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.topology.dense import DenseTable

_COLUMNS: Final = ("src", "dst")
_LEAST_ROWS: Final = 1 << 20
_MOST_ROWS: Final = 1 << 22
"""Edges resolved at once: as many as there are nodes, which are hashed for it each time."""

_LOOKED_UP_SHARE: Final = 0.1
"""Of the nodes: ids up to which each is looked up, beyond which all nodes are hashed once."""


def all_ends(
    edges: DenseTable, sources: DenseTable, targets: DenseTable
) -> tuple[np.ndarray, np.ndarray]:
    """Where every edge comes from and leads to, by the edge's number."""
    if edges.is_resident("src") and edges.is_resident("dst"):
        src, dst = edges.column("src"), edges.column("dst")
        return _resolved(sources, src), _resolved(targets, dst)
    found = [(np.empty(0, np.int32), np.empty(0, np.int32))]
    ids = [state.id for state in edges.fragments]
    for src, dst in _portions(edges, ids, max(sources.count, targets.count)):
        found.append((_resolved(sources, src), _resolved(targets, dst)))
    return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])


def some_ends(
    edges: DenseTable, sources: DenseTable, targets: DenseTable, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of edges in an order of its own, and where each of them comes from and leads to.

    Args:
        numbers: which edges, ascending.
    """
    whole, rest = _by_fragment(edges, numbers)
    found = [(_resolved(sources, src), _resolved(targets, dst)) for src, dst in _rows(edges, rest)]
    order = [rest]
    if whole:
        starts = _starts(edges)
        order += [np.arange(starts[place], starts[place + 1]) for place in whole]
        ids = [edges.fragments[place].id for place in whole]
        for src, dst in _portions(edges, ids, max(sources.count, targets.count)):
            found.append((_resolved(sources, src), _resolved(targets, dst)))
    empty = np.empty(0, np.int32)
    return (
        np.concatenate(order).astype(np.int32),
        np.concatenate([empty, *(one for one, _ in found)]),
        np.concatenate([empty, *(other for _, other in found)]),
    )


def _resolved(nodes: DenseTable, ids: pa.Array) -> np.ndarray:
    """The numbers of the nodes with these ids; -1 where there is none."""
    pause()
    if len(ids) <= _LOOKED_UP_SHARE * nodes.count or not nodes.fits("id"):
        return nodes.numbers_of(ids)
    found = pc.index_in(ids, value_set=nodes.column("id")).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int32)


def _portions(
    edges: DenseTable, fragment_ids: list[int], node_count: int
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The ids of both ends of the edges of these fragments, many at a time."""
    size = min(max(node_count, _LEAST_ROWS), _MOST_ROWS)
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in read_fragments(edges.table, _COLUMNS, fragment_ids):
        waiting.append(batch)
        held += batch.num_rows
        if held >= size:
            yield _joined(waiting)
            waiting, held = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> tuple[pa.Array, pa.Array]:
    src, dst = (pa.concat_arrays([batch.column(at) for batch in batches]) for at in (0, 1))
    return src, dst


def _by_fragment(edges: DenseTable, numbers: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Places of fragments all of whose edges are wanted, and the numbers of the other edges."""
    starts = _starts(edges)
    bounds = np.searchsorted(numbers, starts)
    is_whole = (np.diff(bounds) == np.diff(starts)) & (np.diff(starts) > 0)
    is_rest = ~np.repeat(is_whole, np.diff(bounds))
    return np.flatnonzero(is_whole).tolist(), numbers[is_rest]


def _starts(edges: DenseTable) -> np.ndarray:
    return np.cumsum([0, *(state.rows for state in edges.fragments)])


def _rows(edges: DenseTable, numbers: np.ndarray) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The ids of both ends of single edges."""
    if len(numbers):
        addresses = pa.array(edges.addresses_of(numbers), pa.uint64())
        rows = take_rows(edges.table, addresses, _COLUMNS)
        yield rows.column("src").combine_chunks(), rows.column("dst").combine_chunks()
