"""A diff of branches in an object store, where rows of both are read at once, tells the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from omnigraph_core.diff.model import ChangeSet

SCHEMA = """
node Person {
  name: String @key
  age: I64?
  note: String?
}
edge Knows: Person -> Person {
  weight: F64?
}
"""
COUNT = 2_000
FORGET = "query forget($name: String) { delete Person where name = $name }"


def people(numbers: np.ndarray, note: str) -> pa.Table:
    return pa.table(
        {
            "name": [f"p{number:05}" for number in numbers.tolist()],
            "age": numbers % 90,
            "note": [f"{note} {number % 7}" for number in numbers.tolist()],
        }
    )


def edges(numbers: np.ndarray, shift: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:05}" for number in numbers.tolist()],
            "from": [f"p{number:05}" for number in numbers.tolist()],
            "to": [f"p{(number + shift) % COUNT:05}" for number in numbers.tolist()],
            "weight": numbers * 0.5,
        }
    )


def filled(address: str) -> Omnigraph:
    """A graph of which two branches have each changed rows beside those of the other: replaced
    some, again and as they were, and deleted and added others."""
    graph = Omnigraph.init(address, SCHEMA)
    graph.load(people(np.arange(COUNT), "first"), type="Person", mode="append")
    graph.load(edges(np.arange(COUNT), 1), type="edge:Knows", mode="append")
    graph.branch_create("other")
    chosen = np.linspace(0, COUNT - 100, 12).astype(int)
    for side, branch in enumerate(("main", "other")):
        mine = chosen + side
        graph.load(people(mine, branch), type="Person", mode="merge", branch=branch)
        graph.load(people(mine[:4], "again"), type="Person", mode="merge", branch=branch)
        graph.load(people(mine[4:6] + 30, "first"), type="Person", mode="merge", branch=branch)
        graph.load(people(mine[:2] + COUNT, branch), type="Person", mode="merge", branch=branch)
        graph.load(edges(mine, 2 + side), type="edge:Knows", mode="merge", branch=branch)
        for number in (mine[-2:] + 40).tolist():
            graph.mutate(FORGET, {"name": f"p{number:05}"}, branch=branch)
    return graph


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[ChangeSet, ChangeSet]:
    graph = filled(str(tmp_path_factory.mktemp("local") / "graph"))
    return diffs(graph)


def diffs(graph: Omnigraph) -> tuple[ChangeSet, ChangeSet]:
    with_values = graph.diff_between("main", "other")
    return with_values, graph.diff_between("main", "other", has_values=False)


def test_the_same_changes_are_told(told: tuple[ChangeSet, ChangeSet], s3_root: str) -> None:
    filled(s3_root)
    for own, expected in zip(diffs(Omnigraph.open(s3_root)), told, strict=True):
        assert own.changes == expected.changes
        assert own.stats == expected.stats
    operations = {change.op for change in told[0].changes}
    assert len(operations) == 3
