"""Whether a cardinality holds for every source: edges come in, sources that break it go out.

As in other writes, nodes without any edge are not asked for one. Of a pass the sources are in
memory with their counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.evolve.portions import count_passes, iter_pass
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.findings import shortened

if TYPE_CHECKING:
    from omnigraph_core.compare.view import RowView
    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.violations import Violations

_NONE: Final = pa.table({"src": pa.array([], pa.utf8()), "edges": pa.array([], pa.int64())})


def check_degrees(
    edge: EdgeType,
    edges: RowView,
    cause: str,
    violations: Violations,
    *,
    has_higher_minimum: bool,
) -> None:
    """Report sources with too many or too few edges.

    Args:
        cause: what messages begin with.
        has_higher_minimum: or else nobody is asked for more edges than before.
    """
    limits = edge.cardinality
    report = _Report(edge, cause, violations)
    passes = count_passes(edges.table.count_rows())
    for number in range(passes):
        starts, degrees = _degrees(edges, number, passes)
        is_wrong = np.zeros(len(degrees), bool)
        if limits.maximum is not None:
            is_wrong |= degrees > limits.maximum
        if has_higher_minimum:
            is_wrong |= degrees < limits.minimum
        report.add(starts, degrees, is_wrong)


def _degrees(edges: RowView, number: int, passes: int) -> tuple[pa.Array, np.ndarray]:
    """The sources of a pass and how many edges each has."""
    counted = _NONE
    for rows in iter_pass(edges, ("src",), ("src",), number, passes):
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
