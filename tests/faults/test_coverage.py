"""A failpoint that no fault test ends a process at would be a promise nobody keeps."""

from __future__ import annotations

from omnigraph_core.engine import omnigraph
from omnigraph_core.failpoints import declared
from tests.faults import test_cleanup, test_init
from tests.faults.operations import OPERATIONS


def test_every_declared_point_is_tried() -> None:
    assert omnigraph.Omnigraph, "importing it declares the points of everything below"
    crashed = {point for operation in OPERATIONS for point in operation.points}
    tried = crashed | set(test_init.POINTS) | set(test_cleanup.POINTS)
    own = {point.name for point in declared() if not point.name.startswith("test.")}
    assert own == tried
