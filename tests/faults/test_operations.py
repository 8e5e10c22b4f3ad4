"""Every operation, ended at every point on its way: all of it has happened, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import OmnigraphError
from omnigraph_core.failpoints import Failpoint, arm
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.staged import stage_append
from tests.faults.crashes import crash_at
from tests.faults.operations import LANDED, OPERATIONS, Operation, perform
from tests.faults.states import check_actors, state_of
from tests.support.graphs import BIN, ids, rows_of, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark.structures import ParameterSet

    from tests.faults.conftest import Copies

_WHOLE = ("load, merge", "mutate, update", "merge", "run publish", "schema steps", "compaction")
_SHARED = ("stage.after_files", "image.after_files", "publish.after_image")
_ALIKE = pytest.mark.long(
    "`load, merge` and others are killed there; all stage and publish through the same functions"
)
_TOGETHER = pytest.mark.long(
    "kills at all such points, one after another on one graph; `load, merge` and others alone"
)
_LONG = pytest.mark.long("a kill at the same point shows what is left")
_FOUND = pytest.mark.long(
    "`load, merge` and others find their commit; all publish through the same function"
)


def _is_shared(operation: Operation, point: str) -> bool:
    """Whether an operation that is tried at every point passes it in the same functions."""
    return point in _SHARED and operation.name not in _WHOLE


def _in_vain(operation: Operation) -> list[str]:
    """Where a killed process has done nothing; whoever looks at a graph completes its log."""
    return [
        point
        for point in operation.points
        if operation.done_at(point) is None
        and not _is_shared(operation, point)
        and not point.startswith("log.")
    ]


def _later(operation: Operation, point: str) -> tuple[pytest.MarkDecorator, ...]:
    if _is_shared(operation, point):
        return (_ALIKE,)
    is_together = operation.name not in _WHOLE and point in _in_vain(operation)
    return (_TOGETHER,) if is_together else ()


def _later_as_error(operation: Operation, point: str) -> tuple[pytest.MarkDecorator, ...]:
    if point not in operation.survives:
        return (_LONG,)
    return (_FOUND,) if point == LANDED and operation.name not in _WHOLE else ()


def _passed(
    later: Callable[[Operation, str], tuple[pytest.MarkDecorator, ...]],
) -> list[ParameterSet]:
    """Every operation at every point."""
    return [
        pytest.param(
            operation, point, id=f"{operation.name}-{point}", marks=later(operation, point)
        )
        for operation in OPERATIONS
        for point in operation.points
    ]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_points_an_operation_passes(
    operation: Operation, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those and no others: where a point is not on the way, nothing needs to be tried."""
    og = Omnigraph.open(copies.of(operation.graph))
    passed: set[str] = set()
    monkeypatch.setattr(Failpoint, "hit", lambda point: passed.add(point.name))
    operation.run(og, "first")
    assert passed == set(operation.points)


@pytest.mark.parametrize(("operation", "point"), _passed(_later))
def test_a_killed_process(operation: Operation, point: str, copies: Copies) -> None:
    """Alone on its graph."""
    address = copies.of(operation.graph)
    crash_at(point, perform, operation.name, address, "first")
    check_all_or_nothing(operation, operation.done_at(point), address, copies)


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.name not in _WHOLE and _in_vain(one)],
    ids=lambda operation: operation.name,
)
def test_processes_killed_in_turn(operation: Operation, copies: Copies) -> None:
    """What they leave is in the way neither of the next, which gets further, nor of the last."""
    address = copies.of(operation.graph)
    for point in _in_vain(operation):
        crash_at(point, perform, operation.name, address, "first")
        assert state_of(address) == copies.state_after(operation), point
    check_all_or_nothing(operation, None, address, copies)


@pytest.mark.parametrize(("operation", "point"), _passed(_later_as_error))
def test_an_error(operation: Operation, point: str, copies: Copies) -> None:
    address = copies.of(operation.graph)
    og = Omnigraph.open(address)
    with arm(point, "error"):
        if point in operation.survives:
            operation.run(og, "first")
        else:
            with pytest.raises(OmnigraphError, match=point):
                operation.run(og, "first")
    check_all_or_nothing(operation, operation.done_despite(point), address, copies)


def check_all_or_nothing(
    operation: Operation, done: Operation | None, address: str, copies: Copies
) -> None:
    """The state is the old or the new one, as told, and the next write works."""
    words = [] if done is None else ["first"]
    assert state_of(address) == copies.state_after(done or operation, *words)
    if operation.repeatable:
        operation.run(Omnigraph.open(address), "first")
        words = ["first"]
        assert state_of(address) == copies.state_after(operation, *words)
    operation.run(Omnigraph.open(address), "second")
    assert state_of(address) == copies.state_after(operation, *words, "second")
    record_another_commit(Omnigraph.open(address))
    check_actors(address)
    Omnigraph.open(address).verify(is_deep=True).require_sound()


def record_another_commit(og: Omnigraph) -> None:
    """Into a table that no operation changes, so that it fits whatever was done."""
    og.load(b'{"type": "Bin", "data": {"code": "b"}}', actor="tester")
    og.list_commits()


def test_a_lost_answer_is_found_by_the_id_of_the_commit(copies: Copies) -> None:
    og = Omnigraph.open(copies.of("plain"))
    snapshot = og.snapshot()
    staged = stage_append(og.table(snapshot, BIN), rows_of(BIN, ["mine"]))
    assert staged is not None
    changes = [update(BIN, staged, TableOperation.APPEND)]
    requirements = requirements_of(snapshot, touched=[BIN])
    chosen = new_ulid()
    with arm("image.after_commit", "error"):
        commit = og.commit(changes, requirements, commit_id=chosen)
    assert commit.graph_commit_id == og.head_commit_id_for_branch() == chosen
    assert commit.manifest_version == snapshot.manifest_version + 1
    made = [item.graph_commit_id for item in og.list_commits()]
    assert made.count(chosen) == 1
    assert ids(og, og.snapshot(), BIN) == ["mine"]
