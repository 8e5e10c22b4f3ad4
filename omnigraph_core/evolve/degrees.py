"""Whether a cardinality holds for every source: edges and nodes come in, sources that break it go
out.

Both bounds are looked at, also for nodes that have no edge at all. Of a pass the sources that have
edges are in memory with their counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.evolve.portions import count_passes, iter_pass
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.findings import shortened
from omnigraph_core.write.tuples import positions

if TYPE_CHECKING:
    from omnigraph_core.compare.view import RowView
    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.violations import Violations

_NONE: Final = pa.table({"src": pa.array([], pa.utf8()), "edges": pa.array([], pa.int64())})


def check_degrees(
    edge: EdgeType,
    edges: RowView | None,
    sources: RowView | None,
    cause: str,
    violations: Violations,
) -> None:
    """Report sources with too many or too few edges.

    Args:
        edges, sources: None where there is no such table, and so no row.
        cause: what messages begin with.
    """
    limits = edge.cardinality
    report = _Report(edge, cause, violations)
    views = [view for view in (edges, sources) if view is not None]
    passes = count_passes(max((view.table.count_rows() for view in views), default=0))
    for number in range(passes):
        starts, degrees = _degrees(edges, number, passes)
        if limits.maximum is not None:
            report.add(starts, degrees, degrees > limits.maximum)
        if limits.minimum and sources is not None:
            for rows in iter_pass(sources, ("id",), ("id",), number, passes):
                ids = rows.column("id").combine_chunks()
                places = positions(ids, starts)
                # A place of -1 looks up the last one, so it is taken out.
                found = np.append(degrees, 0)[places]
                report.add(ids, found, found < limits.minimum)


def _degrees(edges: RowView | None, number: int, passes: int) -> tuple[pa.Array, np.ndarray]:
    """The sources of a pass and how many edges each has."""
    counted = _NONE
    rows_of_pass = () if edges is None else iter_pass(edges, ("src",), ("src",), number, passes)
    for rows in rows_of_pass:
        counts = pc.value_counts(rows.column("src"))
        here = pa.table({"src": counts.field("values"), "edges": counts.field("counts")})
        joined = pa.concat_tables([counted, here]).group_by("src").aggregate([("edges", "sum")])
        counted = joined.select(["src", "edges_sum"]).rename_columns(["src", "edges"])
    return counted.column("src").combine_chunks(), counted.column("edges").to_numpy()


class _Report:
    def __init__(self, edge: EdgeType, cause: str, violations: Violations) -> None:
        self._edge = edge
        self._cause = cause
        self._violations = violations

    def add(self, sources: pa.Array, degrees: np.ndarray, is_wrong: np.ndarray) -> None:
        wrong = np.flatnonzero(is_wrong)
        listed = wrong[: self._violations.room].tolist()
        for place in listed:
            self._violations.add(self._violation(sources[place].as_py(), int(degrees[place])))
        self._violations.count(Rule.CARDINALITY, len(wrong) - len(listed))

    def _violation(self, source: str, degree: int) -> Violation:
        limits, name = self._edge.cardinality, str(self._edge.name)
        allowed = f"{limits.minimum}..{'' if limits.maximum is None else limits.maximum}"
        message = (
            f"{self._cause}: @card violation on edge {name}: source {shortened(source)!r} has "
            f"{degree}, allowed {allowed}"
        )
        return Violation(Rule.CARDINALITY, message, name, "src", shortened(source))
