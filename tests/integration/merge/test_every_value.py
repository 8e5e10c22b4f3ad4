"""A row of any of four versions in base, ours and theirs: 64 of them in one merge, node and edge.

Decisions are told by the rule alone, whatever the base's version is called.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from tests.integration.merge.test_generated_table import (
    ABSENT,
    DD,
    DELETE,
    DI,
    DU,
    INSERT,
    KEEP,
    KEYS,
    UPDATE,
    VALUES,
    conflicts_of,
    counts,
    id_of,
    moved,
    records,
    remove,
    row,
    start,
    states,
    written,
)
from tests.support.merge_worlds import graph_of, load

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

CUBE = list(product((ABSENT, "same", "a", "b"), repeat=3))


def decision(base: str, ours: str, theirs: str) -> str:
    if theirs in (base, ours):
        return KEEP
    if ours == base:
        return INSERT if ours == ABSENT else DELETE if theirs == ABSENT else UPDATE
    if base == ABSENT:
        return DI
    return DD if ABSENT in (ours, theirs) else DU


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """Base, ours and theirs with a row for each of the 64, called by its three versions."""
    og = start(tmp_path_factory.mktemp("cube"))
    for branch, place in (("main", 0), ("ours", 1), ("theirs", 2)):
        if branch != "main":
            og.branch_create(branch)
        put = [v for v in CUBE if v[place] != ABSENT and (place == 0 or v[place] != v[0])]
        load(og, branch, [r for v in put for r in records(id_of(v), VALUES[v[place]])])
        if place:
            gone = [id_of(v) for v in CUBE if v[place] == ABSENT != v[0]]
            remove(og, branch, gone)
    return og


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_every_value_in_every_place(cube: Omnigraph, side: str) -> None:
    decisions = {versions: decision(*versions) for versions in CUBE}
    kinds = {versions: found for versions, found in decisions.items() if found in (DI, DU, DD)}
    expected = {(key, id_of(v), kind) for key in KEYS for v, kind in kinds.items()}
    assert conflicts_of(cube, "theirs", "ours", "row") == expected
    branch = f"cube-{side}"
    cube.branch_create(branch, source="ours")
    before = {key: states(cube, branch, key) for key in KEYS}
    result = cube.branch_merge("theirs", into=branch, resolve=side)
    taken = {v for v, found in decisions.items() if found != KEEP}
    if side == "ours":
        taken -= kinds.keys()
    after = {v: v[2] if v in taken else v[1] for v in CUBE}
    writes = written(
        INSERT if v[1] == ABSENT else DELETE if v[2] == ABSENT else UPDATE for v in taken
    )
    for key in KEYS:
        rows = {id_of(v): row(key, id_of(v), VALUES[a]) for v, a in after.items() if a != ABSENT}
        assert graph_of(cube, branch)[key] == rows
        assert counts(result, key) == writes
        assert moved(before[key], states(cube, branch, key)) == (
            writes[0] + writes[1],
            writes[1] + writes[2],
        )
