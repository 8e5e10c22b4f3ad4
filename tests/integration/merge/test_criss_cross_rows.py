"""Every case of a row in branches that merged each other crosswise, in one graph."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import column

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.merge.model import MergeConflict, MergeResult

VALUES = (None, "a", "b", "c")


class Case:
    """One row: what the root, the bases and the sides have of it."""

    def __init__(
        self, root: str | None, bases: tuple[str | None, ...], ours: str | None, theirs: str | None
    ) -> None:
        self.root, self.bases, self.ours, self.theirs = root, bases, ours, theirs
        self.id = "-".join(value or "0" for value in (root, *bases, ours, theirs))

    def expected(self) -> tuple[str | None, str | None]:
        """The value after the merge, and the kind of conflict."""
        changed = {value for value in self.bases if value != self.root}
        if len(changed) > 1:
            return self._undecided()
        base = changed.pop() if changed else self.root
        if self.theirs in (base, self.ours):
            return self.ours, None
        if self.ours == base:
            return self.theirs, None
        if base is None:
            return None, "divergent_insert"
        gone = None in (self.ours, self.theirs)
        return None, "delete_vs_update" if gone else "divergent_update"

    def _undecided(self) -> tuple[str | None, str | None]:
        if self.ours == self.theirs:
            return self.ours, None
        gone = None in (self.ours, self.theirs)
        return None, "delete_vs_update" if gone else "divergent_insert"


def cases_of(count: int, sides: tuple[str | None, ...]) -> Iterator[Case]:
    values = VALUES[:3]
    for root in VALUES[:2]:
        for chosen in itertools.product(values, repeat=count):
            for ours, theirs in itertools.product(sides, repeat=2):
                yield Case(root, chosen, ours, theirs)


def write(og: Omnigraph, branch: str, values: dict[str, str | None]) -> None:
    """Give a branch these rows and no others."""
    records = [
        {"type": "Item", "data": {"key": key, "value": value}}
        for key, value in [*values.items(), ("always", branch)]
        if value is not None
    ]
    og.load("\n".join(map(json.dumps, records)).encode(), mode="overwrite", branch=branch)


@pytest.mark.parametrize(("count", "sides"), [(2, VALUES), (3, VALUES[:3])])
def test_every_case_of_a_row(tmp_path: Path, count: int, sides: tuple[str | None, ...]) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), "node Item { key: String @key value: String }")
    cases = list(cases_of(count, sides))
    write(og, "main", {case.id: case.root for case in cases})
    og.branch_create("side")
    names = [f"base{at}" for at in range(count)]
    for at, name in enumerate(names):
        og.branch_create(name, source="main")
        write(og, name, {case.id: case.bases[at] for case in cases})
    for branch, order in (("main", names), ("side", names[::-1])):
        for name in order:
            og.branch_merge(name, into=branch, resolve="theirs")
    write(og, "main", {case.id: case.ours for case in cases})
    write(og, "side", {case.id: case.theirs for case in cases})
    expected = {case.id: case.expected() for case in cases}
    wanted = {id: kind for id, (_, kind) in expected.items() if kind is not None}
    wanted["always"] = "divergent_insert"
    for source, target in (("side", "main"), ("main", "side")):
        result = og.branch_merge(source, into=target, dry_run=True)
        assert kinds(result.conflicts) == wanted
    merged = og.branch_merge("side", resolve="ours")
    assert merged.resolved == len(wanted)
    check_result(og, cases, merged)


def kinds(conflicts: tuple[MergeConflict, ...]) -> dict[str | None, str]:
    return {item.row_id: str(item.kind) for item in conflicts}


def check_result(og: Omnigraph, cases: list[Case], result: MergeResult) -> None:
    found = column(og, "main", "value", "node:Item")
    for case in cases:
        value, kind = case.expected()
        assert found.get(case.id) == (case.ours if kind else value), case.id
    assert result.outcome is MergeOutcome.MERGED
