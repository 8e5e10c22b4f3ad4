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
    from omnigraph_core.topology.row_numbers import RowNumbers

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
    rows = edges.rows
    if edges.is_resident("src") and edges.is_resident("dst"):
        src, dst = edges.column("src"), edges.column("dst")
        if not len(rows.gaps):
            return _resolved(sources, src), _resolved(targets, dst)
        live = pa.array(rows.live_numbers())
        starts, ends = _resolved(sources, src.take(live)), _resolved(targets, dst.take(live))
        return _by_number(rows, starts), _by_number(rows, ends)
    read = [(np.empty(0, np.int32), np.empty(0, np.int32))]
    ids = [state.id for state in edges.fragments]
    for src, dst in _portions(edges, ids, max(sources.count, targets.count)):
        read.append((_resolved(sources, src), _resolved(targets, dst)))
    starts = np.concatenate([one for one, _ in read])
    ends = np.concatenate([other for _, other in read])
    return _by_number(rows, starts), _by_number(rows, ends)


def some_ends(
    edges: DenseTable, sources: DenseTable, targets: DenseTable, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of edges in an order of its own, and where each of them comes from and leads to.

    Args:
        numbers: which edges, ascending.
    """
    fragments, whole, rest = _by_fragment(edges, numbers)
    found = [(_resolved(sources, src), _resolved(targets, dst)) for src, dst in _rows(edges, rest)]
    if fragments:
        for src, dst in _portions(edges, fragments, max(sources.count, targets.count)):
            found.append((_resolved(sources, src), _resolved(targets, dst)))
    empty = np.empty(0, np.int32)
    return (
        np.concatenate((rest, whole)).astype(np.int32),
        np.concatenate([empty, *(one for one, _ in found)]),
        np.concatenate([empty, *(other for _, other in found)]),
    )


def _by_number(rows: RowNumbers, ends: np.ndarray) -> np.ndarray:
    """What rows have in scan order, by their numbers."""
    if not len(rows.gaps):
        return ends
    spread = np.full(rows.extent, -1, np.int32)
    spread[rows.live_numbers()] = ends
    return spread


def _resolved(nodes: DenseTable, ids: pa.Array) -> np.ndarray:
    """The numbers of the nodes with these ids; -1 where there is none."""
    pause()
    if len(ids) <= _LOOKED_UP_SHARE * nodes.count or not nodes.fits("id"):
        return nodes.numbers_of(ids)
    known = nodes.column("id")
    if not len(nodes.rows.gaps):
        found = pc.index_in(ids, value_set=known).fill_null(-1)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int32)
    # A row that was rewritten has its id twice: only that of the row that is there counts.
    numbers = nodes.live_numbers()
    found = pc.index_in(ids, value_set=known.take(pa.array(numbers))).fill_null(-1)
    places = found.to_numpy(zero_copy_only=False)
    result: np.ndarray = np.append(numbers, np.int32(-1)).take(places)
    return result


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


def _by_fragment(
    edges: DenseTable, numbers: np.ndarray
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Fragments all of whose edges are wanted, the numbers of those, and the other numbers."""
    stretches = edges.rows.stretches
    bounds = np.array([(item.start, item.end) for item in stretches], np.int64).reshape(-1, 2)
    firsts, lasts = np.searchsorted(numbers, bounds).T
    counts = np.array([state.rows for state in edges.fragments], np.int64)
    is_whole = (lasts - firsts == counts) & (counts > 0)
    chosen = np.zeros(len(numbers), np.bool_)
    places = np.flatnonzero(is_whole).tolist()
    for place in places:
        chosen[firsts[place] : lasts[place]] = True
    ids = [edges.fragments[place].id for place in places]
    return ids, numbers[chosen], numbers[~chosen]


def _rows(edges: DenseTable, numbers: np.ndarray) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The ids of both ends of single edges."""
    if len(numbers):
        addresses = pa.array(edges.addresses_of(numbers), pa.uint64())
        rows = take_rows(edges.table, addresses, _COLUMNS)
        yield rows.column("src").combine_chunks(), rows.column("dst").combine_chunks()
