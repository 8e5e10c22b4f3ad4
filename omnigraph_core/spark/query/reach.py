"""Traversals of several hops: from each source, what has a shortest distance within the bounds.

Hop by hop, all sources at once: pairs of a source and a node are joined with the edges, and those
that were not there before are the next level. A source reaches itself only through a stored
self-loop, and only when one hop is enough.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from omnigraph_core.spark.query.cells import id_of
from omnigraph_core.spark.query.context import of_side
from omnigraph_core.spark.query.frame import Frame, column
from omnigraph_core.spark.query.scan import FROM, TO
from omnigraph_core.spark.query.tables import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.spark.query.context import Context

_SOURCE: Final = "#source"
_NODE: Final = "#node"
_KEY: Final = "#id"
_UNKNOWN: Final = float("inf")


def reached(ctx: Context, op: Expand, frame: Frame) -> tuple[Frame, Side]:
    """Pairs of a source of the match and what it reaches, each once: `FROM` and `TO`."""
    assert frame.rows is not None
    frame = frame.with_rows(ctx.actions.held(frame.rows))
    assert frame.rows is not None
    source = column(id_of(op.src_var).name)
    sources = frame.rows.where(source.isNotNull()).select(source.alias(_SOURCE)).distinct()
    edges = _whole_edges(ctx, op)
    levels = _Walk(ctx, op, edges).levels(ctx.actions.held(sources), frame.estimate)
    rows = reduce(lambda one, other: one.unionByName(other), levels)
    named = rows.select(column(_SOURCE).alias(FROM), column(_NODE).alias(TO))
    return frame, Side(named, _UNKNOWN, 2 * edges.width)


def _whole_edges(ctx: Context, op: Expand) -> Side:
    """Pairs of neighbours, each once, that have a node at the far end."""
    edges = ctx.tables.edges(op)
    nodes = ctx.tables.nodes(op.dst_var, (), key=_KEY)
    whole = ctx.joins.joined(of_side(edges), nodes, [(TO, _KEY)], "left_semi")
    rows = ctx.actions.held(whole.dropDuplicates([FROM, TO]))
    return Side(rows, edges.most, edges.width)


class _Walk:
    """A walk along edges from many sources at once."""

    def __init__(self, ctx: Context, op: Expand, edges: Side) -> None:
        self._ctx = ctx
        self._op = op
        self._edges = edges

    def levels(self, sources: DataFrame, estimate: float) -> Sequence[DataFrame]:
        """For each distance within the bounds the pairs that are first reached there."""
        op = self._op
        start = sources.select(column(_SOURCE), column(_SOURCE).alias(_NODE))
        found = [self._loops(sources, estimate)] if op.min_hops == 1 else []
        front, seen = start, start
        for distance in range(1, op.max_hops + 1):
            is_last = distance == op.max_hops
            level = self._next(front, seen, estimate)
            if not is_last:
                level = self._ctx.actions.held(level)
            if distance >= op.min_hops:
                found.append(level)
            if is_last or self._ctx.actions.act(level.isEmpty):
                break
            front, seen = level, seen.unionByName(level)
        return found or [start.limit(0)]

    def _loops(self, sources: DataFrame, estimate: float) -> DataFrame:
        """Sources with an edge to themselves."""
        loops = self._edges.rows.where(column(FROM) == column(TO)).select(column(FROM))
        side = Side(loops, self._edges.most, self._edges.width)
        frame = Frame(sources, estimate=estimate)
        rows = self._ctx.joins.joined(frame, side, [(_SOURCE, FROM)], "left_semi")
        return rows.select(column(_SOURCE), column(_SOURCE).alias(_NODE))

    def _next(self, front: DataFrame, seen: DataFrame, estimate: float) -> DataFrame:
        """Pairs one hop further that were not seen yet."""
        joins = self._ctx.joins
        frame = Frame(front, estimate=estimate)
        rows = joins.joined(frame, self._edges, [(_NODE, FROM)], "inner")
        further = rows.select(column(_SOURCE), column(TO).alias(_NODE)).distinct()
        known = seen.select(column(_SOURCE).alias(FROM), column(_NODE).alias(TO))
        side = Side(known, _UNKNOWN, self._edges.width)
        keys = [(_SOURCE, FROM), (_NODE, TO)]
        return joins.joined(Frame(further, estimate=_UNKNOWN), side, keys, "left_anti")
