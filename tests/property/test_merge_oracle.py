"""Merges of random worlds do what the oracle does, and what cannot be merged leaves no trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.examples import LONG, seeds
from tests.support.merge_checks import check_merge
from tests.support.merge_oracle import Rules
from tests.support.merge_worlds import SCHEMA, World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.merge_oracle import Merged

RULES = [
    Rules(strategy, side) for strategy in ("row", "property") for side in (None, "ours", "theirs")
]

PAIRS = 3 if LONG else 1
"""Of branches per world."""
USUAL = (2, 5)
"""Worlds in which the first pair meets every outcome."""


def world(path: Path, seed: int) -> World:
    made = World(Omnigraph.init(str(path / "graph"), SCHEMA), seed)
    made.fill("main")
    return made


@pytest.mark.parametrize("block", seeds(0, 1))
def test_two_branches(tmp_path: Path, block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * 3, block * 3 + 3) if LONG else USUAL:
        made = world(tmp_path / str(seed), seed)
        for pair in range(PAIRS):
            seen += compare_pair(made, f"ours-{pair}", f"theirs-{pair}")
    assert seen.keys() == {"clean", "conflicts", "violations"}


def compare_pair(made: World, ours: str, theirs: str) -> Counter[str]:
    """Edit two branches apart and merge them in every way."""
    seen: Counter[str] = Counter()
    for branch in (ours, theirs):
        made.og.branch_create(branch)
        made.edit(branch, made.random.randint(1, 5))
    for number, rules in enumerate(RULES):
        copy = f"{ours}-{number}"
        made.og.branch_create(copy, source=ours)
        merged = check_merge(made.og, theirs, copy, rules)
        seen[_kind(merged)] += 1
        if merged.conflicts and rules.resolve is None:
            _choose(made, theirs, copy, rules, merged)
    return seen


def _choose(made: World, source: str, target: str, rules: Rules, merged: Merged) -> None:
    """Decide some conflicts row by row: the others stay; then all."""
    rows = sorted((key, str(id)) for key, id, _ in merged.conflicts)
    choices = {row: made.random.choice(("ours", "theirs")) for row in rows}
    some = dict(made.random.sample(sorted(choices.items()), len(rows) // 2))
    if some:
        check_merge(made.og, source, target, Rules(rules.strategy, None, some))
    check_merge(made.og, source, target, Rules(rules.strategy, None, choices))


def _kind(merged: Merged) -> str:
    if merged.is_clean:
        return "clean"
    return "conflicts" if merged.conflicts else "violations"


@pytest.mark.parametrize("seed", seeds(100, 1))
def test_chains(tmp_path: Path, seed: int) -> None:
    """Branches that edit and merge each other for a while, criss-cross too."""
    made = world(tmp_path, seed)
    branches = ["main", "left", "right"]
    for name in branches[1:]:
        made.og.branch_create(name)
    for _ in range(8 if LONG else 6):
        made.edit(made.random.choice(branches), made.random.randint(1, 2))
        source, target = made.random.sample(branches, 2)
        merged = check_merge(made.og, source, target, made.random.choice(RULES))
        if merged.conflicts:
            check_merge(made.og, source, target, Rules("property", "theirs"))


@pytest.mark.parametrize("seed", seeds(300, 1))
def test_crosswise(tmp_path: Path, seed: int) -> None:
    """Branches that get each other's older states, so that bases are made of several commits."""
    made = world(tmp_path, seed)
    branches = ["main", "left", "right"]
    for name in branches[1:]:
        made.og.branch_create(name)
    for turn in range(3 if LONG else 2):
        for name in branches:
            made.edit(name, 1)
        for name in branches:
            made.og.branch_create(f"{name}-{turn}", source=name)
        ways = [(source, target) for source in branches for target in branches if source != target]
        for source, target in made.random.sample(ways, 4):
            older = f"{source}-{turn}"
            merged = check_merge(made.og, older, target, made.random.choice(RULES))
            if merged.conflicts:
                check_merge(made.og, older, target, Rules("property", "theirs"))
