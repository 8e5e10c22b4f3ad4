"""A loaded graph goes through every kind of schema change, on main and on branches that merge.

Rows, ids and history come along: what was there reads as the new schema says, and what was there
before reads as it did then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import DataError
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome
from omnigraph_core.schema.migrate import StepKind
from tests.integration.evolve.library import (
    ARTICLE,
    ON,
    SCHEMA,
    STAGES,
    Content,
    Stage,
    article,
    content,
    evolved,
    new_library,
    on,
    put,
    without_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

CHANGED_ON_SIDE = (
    article("a2", state="live", access="some", extra="side", cover="base64:AgM=", tags=[]),
    article("s1", mood="wild", ratio=0.3, pages=[9]),
    on("o4", "s1", "c", weight=1),
)
CHANGED_ON_MAIN = (
    article("m1", pages=[7], size=8, mood="calm"),
    on("o5", "m1", "b", weight=9),
    on("o2", "a2", "c", weight=2),
)
DELETE = 'query q() { delete Article where slug = "a3" }'


@pytest.fixture
def og(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", "off")
    return new_library(str(tmp_path / "graph"))


class Walk:
    """Stages taken on a branch: the kinds of steps they took, and every state before one."""

    def __init__(self, og: Omnigraph, branch: str) -> None:
        self._og, self._branch = og, branch
        self.kinds: set[str] = set()
        self._passed: list[tuple[str, str, Content]] = []

    def take(self, stages: Sequence[Stage]) -> None:
        for stage in stages:
            before = self._og.snapshot(self._branch)
            rows = content(self._og, before)
            self._passed.append((before.commit.graph_commit_id, before.schema.source, rows))
            source = stage.applied_to(before.schema.source)
            result = self._og.schema_apply(source, branch=self._branch)
            kinds = {str(report.step.kind) for report in result.steps}
            assert kinds == stage.kinds, stage.name
            self.kinds |= kinds
            self._check_identity(before.commit.graph_commit_id)

    def _check_identity(self, before_id: str) -> None:
        """Ids stay, whatever a type is called; a table is known by its place."""
        before = self._og.snapshot_of(ReadTarget(snapshot_id=before_id))
        after = self._og.snapshot(self._branch)
        old = {entry.location: key for key, entry in before.tables.items()}
        was, is_now = content(self._og, before), content(self._og, after)
        for key, entry in after.tables.items():
            if entry.location in old:
                assert is_now[key].keys() == was[old[entry.location]].keys()
            else:
                assert not is_now[key]

    def check_history(self) -> None:
        """Every state on the way is as it was, schema and rows."""
        for commit_id, source, rows in self._passed:
            snapshot = self._og.snapshot_of(ReadTarget(snapshot_id=commit_id))
            assert snapshot.schema.source == source
            assert content(self._og, snapshot) == rows


def vectors(og: Omnigraph, branch: str = "main") -> tuple[int, int, int]:
    (found,) = og.embedding_status(branch)
    return found.ready, found.pending, found.stale


def check_end(og: Omnigraph, expected: Content) -> None:
    """Rows are as they should be, and the schema that was reached is in force."""
    assert without_vectors(content(og, og.snapshot())) == without_vectors(expected)
    og.verify(is_deep=True).require_sound()
    rows = len(expected[ARTICLE])
    assert og.embed_backfill().vectors_made == rows
    assert vectors(og) == (rows, 0, 0)
    final = {"slug": "z", "title": "About z", "access": "whoever", "state": "kept", "views": -1}
    put(og, "main", {"type": "Article", "data": final}, {"type": "Topic", "data": {"name": "t"}})
    put(og, "main", {"edge": "About", "from": "z", "to": "t", "data": {"id": "e"}})
    for wrong in ({"title": "About a1"}, {"mood": "glad"}, {"state": "gone"}, {"tags": ["x"]}):
        with pytest.raises(DataError):
            put(og, "main", {"type": "Article", "data": {**final, "slug": "y", **wrong}})
    found = og.query(
        "main",
        "query q() { match { $a: Article  $a on $r } return { $a.slug as slug, $r.code as rack } "
        "order { slug, rack } }",
    )
    edges = {(row["src"], row["dst"]) for row in expected[ON].values()}
    assert [tuple(row.values()) for row in found.table.to_pylist()] == sorted(edges)
    og.optimize()
    og.verify(is_deep=True).require_sound()


def change_rows(first: Content, og: Omnigraph) -> Content:
    """The rows of the first schema once both branches' changes are in: found out on a third."""
    og.branch_create("both")
    put(og, "both", *CHANGED_ON_SIDE, *CHANGED_ON_MAIN)
    og.mutate(DELETE, branch="both")
    found = content(og, og.snapshot("both"))
    assert found.keys() == first.keys()
    return found


def test_every_kind_of_step_on_main(og: Omnigraph) -> None:
    first = content(og, og.snapshot())
    assert vectors(og) == (3, 0, 0)
    walk = Walk(og, "main")
    walk.take(STAGES)
    assert walk.kinds == {*StepKind} - {StepKind.UNSUPPORTED_CHANGE}
    assert vectors(og) == (0, 0, 3)
    check_end(og, evolved(first))
    walk.check_history()
    old = og.query(
        ReadTarget(snapshot_id=og.list_commits()[-1].graph_commit_id),
        "query q() { match { $s: Scrap } return { $s.code } }",
    )
    assert old.table.num_rows == 0


def test_every_kind_of_step_on_a_branch(og: Omnigraph) -> None:
    """Main only has other rows by then; merging brings them into the new shape."""
    expected = change_rows(content(og, og.snapshot()), og)
    og.branch_create("side")
    put(og, "side", *CHANGED_ON_SIDE)
    walk = Walk(og, "side")
    walk.take(STAGES)
    assert walk.kinds == {*StepKind} - {StepKind.UNSUPPORTED_CHANGE}
    put(og, "main", *CHANGED_ON_MAIN)
    og.mutate(DELETE)
    before = og.snapshot()
    result = og.branch_merge("side")
    assert (result.outcome, result.is_schema_changed) == (MergeOutcome.MERGED, True)
    assert og.schema_show().hash == og.schema_show("side").hash
    check_end(og, evolved(expected))
    walk.check_history()
    assert og.snapshot_of(ReadTarget(snapshot_id=before.commit.graph_commit_id)) == before
    assert before.schema.source == SCHEMA


@pytest.mark.parametrize("is_even_on_main", [True, False])
def test_steps_on_both_branches(og: Omnigraph, is_even_on_main: bool) -> None:
    """Each has taken every other stage, and other rows: together they come to the same."""
    expected = change_rows(content(og, og.snapshot()), og)
    og.branch_create("side")
    put(og, "main", *CHANGED_ON_MAIN)
    og.mutate(DELETE)
    put(og, "side", *CHANGED_ON_SIDE)
    halves = STAGES[::2], STAGES[1::2]
    walks = [Walk(og, "main"), Walk(og, "side")]
    for walk, stages in zip(walks, halves if is_even_on_main else halves[::-1], strict=True):
        walk.take(stages)
    result = og.branch_merge("side")
    assert (result.outcome, result.is_schema_changed) == (MergeOutcome.MERGED, True)
    check_end(og, evolved(expected))
    for walk in walks:
        walk.check_history()
    assert og.branch_merge("main", into="side").outcome is MergeOutcome.FAST_FORWARD
    assert content(og, og.snapshot("side")) == content(og, og.snapshot())
