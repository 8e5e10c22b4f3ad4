"""Cardinality: how many edges of a type leave each source that a write touches.

Sources of new edges are counted, and where there is a minimum also those that lose an edge; sources
that are gone themselves are not, and those the write does not touch are never looked at. A row that
is bad for another reason is not one too many, and nobody is short because of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.findings import shortened
from omnigraph_core.write.tuples import chosen, distinct, positions, without

if TYPE_CHECKING:
    from omnigraph_core.schema.ast import Cardinality
    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.delta import Part
    from omnigraph_core.write.view import CommittedView


_NO_EDGES: Final = pa.table({"id": pa.array([], pa.utf8()), "src": pa.array([], pa.utf8())})


@dataclass(frozen=True, slots=True)
class _Counts:
    """Edges per source after the write; rows of the write by the number of their source."""

    sources: pa.Array
    source_of: np.ndarray
    """For each row of the write the number of its source, -1 where it does not count."""
    given: np.ndarray
    kept: np.ndarray
    total: np.ndarray
    committed: pa.Table
    """Edges of the sources as they are now."""


def check_cardinality(
    edge: EdgeType,
    part: Part,
    nodes: Part | None,
    view: CommittedView,
    violations: Violations,
) -> None:
    """Report sources with too many or too few edges.

    Args:
        nodes: what the write does to the table of the sources.
    """
    limits = edge.cardinality
    if not limits.minimum and limits.maximum is None:
        return
    counts = _count(part, limits, _sources(part, limits, nodes, view), view)
    wrong = np.zeros(len(counts.sources), dtype=bool)
    if limits.maximum is not None:  # an edge less cannot be one too many
        wrong = (counts.given > 0) & (counts.total > limits.maximum)
        part.findings.mark(_beyond(counts, wrong, limits.maximum))
    too_few = counts.total < limits.minimum
    # Sources with rows first: those rows are bad then, and do not take an edge from the others.
    for candidates in (too_few & (counts.given > 0), too_few & (counts.given == 0)):
        if candidates.any():
            short = candidates & ~_is_open(part, counts)
            part.findings.mark(_rows_of(counts, short))
            wrong |= short
    _report(edge, part, counts, np.flatnonzero(wrong), violations)


def _sources(part: Part, limits: Cardinality, nodes: Part | None, view: CommittedView) -> pa.Array:
    """The sources to count, those of new edges first."""
    counted = part.counted
    chunks = chosen(part.rows.column("src"), counted).chunks
    if limits.minimum:
        chunks = [*chunks, *_old_sources(part, counted, view).chunks]
    found = distinct(pa.chunked_array(chunks, pa.utf8()))
    if nodes is None:
        return found
    if nodes.delta.is_overwrite:
        found = found.filter(pc.is_in(found, value_set=nodes.ids))
    return without(without(found, nodes.delta.deleted), nodes.doubted)


def _old_sources(part: Part, counted: np.ndarray, view: CommittedView) -> pa.ChunkedArray:
    """Where the edges that the write replaces or deletes start."""
    if part.delta.is_overwrite:
        return view.scan(part.table_key, ("src",)).column("src")
    ids = pa.chunked_array([*part.replaced_by(counted).chunks, part.delta.deleted], pa.utf8())
    if not len(ids):
        return pa.chunked_array([], pa.utf8())
    return view.rows(part.table_key, "id", ids, ("src",)).column("src")


def _count(part: Part, limits: Cardinality, sources: pa.Array, view: CommittedView) -> _Counts:
    source_of = positions(part.rows.column("src"), sources)
    source_of[~part.counted] = -1
    given = np.bincount(source_of[source_of >= 0], minlength=len(sources))
    kept = np.zeros(len(sources), dtype=np.int64)
    committed = _NO_EDGES
    is_asked = given < limits.minimum
    if limits.maximum is not None:
        is_asked |= given > 0
    if is_asked.any() and not part.delta.is_overwrite:
        asked = sources.filter(pa.array(is_asked))
        columns = ("id", "src") if len(part.touched) else ("src",)
        committed = view.rows(part.table_key, "src", asked, columns)
        staying = part.staying(committed).column("src")
        kept = np.bincount(positions(staying, sources), minlength=len(sources))
    return _Counts(sources, source_of, given, kept, given + kept, committed)


def _is_open(part: Part, counts: _Counts) -> np.ndarray:
    """Whether a source can have more edges than were counted.

    It can if a row that is out starts there, or would take an edge away from there.
    """
    is_out = ~part.counted
    is_open = np.zeros(len(counts.sources), dtype=bool)
    if not is_out.any():
        return is_open
    started = chosen(part.rows.column("src"), is_out)
    ids = part.replaced_by(is_out)
    if len(ids) and counts.committed.num_rows:
        taken = pc.is_in(counts.committed.column("id"), value_set=ids)
        started = pa.chunked_array(
            [*started.chunks, *counts.committed.column("src").filter(taken).chunks], pa.utf8()
        )
    numbers = positions(started, counts.sources)
    is_open[numbers[numbers >= 0]] = True
    return is_open


def _rows_of(counts: _Counts, chosen: np.ndarray) -> np.ndarray:
    if not chosen.any():
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((counts.source_of >= 0) & chosen[counts.source_of])


def _beyond(counts: _Counts, too_many: np.ndarray, maximum: int) -> np.ndarray:
    """The rows that no place is left for, first come first served."""
    rows = _rows_of(counts, too_many)
    if not len(rows):
        return rows
    rows = rows[np.argsort(counts.source_of[rows], kind="stable")]
    sources = counts.source_of[rows]
    rank = np.arange(len(rows)) - np.searchsorted(sources, sources, side="left")
    beyond: np.ndarray = rows[rank + counts.kept[sources] >= maximum]
    return beyond


def _report(
    edge: EdgeType, part: Part, counts: _Counts, wrong: np.ndarray, violations: Violations
) -> None:
    if not len(wrong):
        return
    last = np.full(len(counts.sources), -1)
    rows = np.flatnonzero(counts.source_of >= 0)
    last[counts.source_of[rows]] = rows  # of several, the last one assigned stays
    shown = wrong[: violations.room].tolist()
    for number in shown:
        source = shortened(counts.sources[number].as_py())
        message = (
            f"@card violation on edge {edge.name}: source {source!r} has "
            f"{counts.total[number]}, allowed {_limits(edge.cardinality)}"
        )
        if last[number] >= 0:
            part.findings.add(
                Rule.CARDINALITY, int(last[number]), message, property="src", value=source
            )
        else:
            violations.add(Violation(Rule.CARDINALITY, message, edge.name, "src", source))
    if len(wrong) > len(shown):
        violations.count(Rule.CARDINALITY, len(wrong) - len(shown))


def _limits(cardinality: Cardinality) -> str:
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"{cardinality.minimum}..{maximum}"
