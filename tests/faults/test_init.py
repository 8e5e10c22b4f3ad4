"""Making a graph, ended at every point: there is none and another try makes it, or it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import AlreadyExists, GraphNotFound, StorageError
from omnigraph_core.failpoints import Failpoint, arm
from tests.faults.crashes import crash_at
from tests.faults.states import state_of
from tests.faults.writes import new_graph, records

if TYPE_CHECKING:
    from pathlib import Path

POINTS = ("init.after_table", "init.after_tables", "init.after_catalog")
VISIBLE_FROM = "init.after_catalog"


def make(address: str) -> None:
    """In a process of its own, which a failpoint may end."""
    new_graph(address)


def test_the_points_it_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: set[str] = set()
    monkeypatch.setattr(Failpoint, "hit", lambda point: passed.add(point.name))
    new_graph(str(tmp_path / "graph"))
    assert passed == set(POINTS)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process(tmp_path: Path, point: str) -> None:
    address = str(tmp_path / "graph")
    crash_at(point, make, address)
    check_all_or_nothing(address, point)


@pytest.mark.long("a kill at the same points shows what is left")
@pytest.mark.parametrize("point", POINTS)
def test_an_error(tmp_path: Path, point: str) -> None:
    address = str(tmp_path / "graph")
    with arm(point, "error"), pytest.raises(StorageError, match=point):
        new_graph(address)
    check_all_or_nothing(address, point)


def check_all_or_nothing(address: str, point: str) -> None:
    if point == VISIBLE_FROM:
        with pytest.raises(AlreadyExists):
            new_graph(address)
    else:
        with pytest.raises(GraphNotFound):
            Omnigraph.open(address)
        new_graph(address)
    fresh = f"{address} beside"
    new_graph(fresh)
    assert state_of(address) == state_of(fresh)
    for made in (address, fresh):
        Omnigraph.open(made).load(records(["p1"]), actor="tester")
    assert state_of(address) == state_of(fresh)
