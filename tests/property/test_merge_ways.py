"""However a merge finds out what it needs, it decides the same: cheap ways beside thorough ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.merge.check import _Check
from omnigraph_core.merge.steps import Steps
from tests.support.examples import seeds
from tests.support.merge_worlds import SCHEMA, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.merge.model import MergeResult

WAYS: list[dict[str, Any]] = [
    {"strategy": strategy, "resolve": side, "dry_run": True}
    for strategy in ("row", "property")
    for side in (None, "ours", "theirs")
]


def told(act: Callable[[], MergeResult]) -> object:
    """All that a dry run says, but for the words of broken rules."""
    result = act()
    rows = [
        (item.table_key, item.row_id, item.kind, item.properties, item.base, item.ours, item.theirs)
        for item in result.conflicts
    ]
    return result.outcome, result.tables, result.resolved, rows


def compare(monkeypatch: pytest.MonkeyPatch, act: Callable[[], MergeResult]) -> None:
    """Have all ways tell the same."""
    found = told(act)
    with monkeypatch.context() as patched:
        patched.setattr(_Check, "_our_rows", lambda *_: None)  # whole tables are looked at
        assert told(act) == found
        patched.setattr(Steps, "keep_ids", lambda *_, **__: False)
        assert told(act) == found
    with monkeypatch.context() as patched:
        patched.setattr(Steps, "keep_ids", lambda *_, **__: False)  # rows are paired by id
        assert told(act) == found


@pytest.mark.parametrize("seed", seeds(500, 1))
def test_every_way_tells_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    made = World(og, seed)
    made.fill("main")
    branches = ["main", "left", "right"]
    for name in branches[1:]:
        og.branch_create(name)
    for _ in range(3):
        for name in branches:
            made.edit(name, made.random.randint(1, 3))
        source, target = made.random.sample(branches, 2)
        options = made.random.choice(WAYS)
        compare(monkeypatch, partial(og.branch_merge, source, into=target, **options))
        picked, undone = (_some_commit(made, name) for name in (source, target))
        compare(monkeypatch, partial(og.cherry_pick, picked, into=target, **options))
        compare(monkeypatch, partial(og.revert, undone, branch=target, **options))
        _try_merge(og, source, target, made.random.choice(("ours", "theirs")))


def _some_commit(made: World, branch: str) -> str:
    """One of the newest, that has something before it."""
    commits = [item for item in made.og.list_commits(branch)[:4] if item.parents]
    return made.random.choice(commits).graph_commit_id


def _try_merge(og: Omnigraph, source: str, target: str, side: str) -> None:
    """Have the branches grow together, where no rule stands in the way."""
    if not og.branch_merge(source, into=target, resolve=side, dry_run=True).conflicts:
        og.branch_merge(source, into=target, resolve=side)
