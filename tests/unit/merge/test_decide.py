"""Every row that three sides can have between them: the decision, and what is written."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from omnigraph_core.merge.decide import CONFLICTS, Decision, Done, decide, is_conflict, settle
from omnigraph_core.merge.model import MergeConflictKind

Row = str | None
VALUES = (None, "s", "a", "b")
CASES: list[tuple[Row, Row, Row]] = list(product(VALUES, repeat=3))

INSERT, UPDATE, DELETE, KEEP = "insert", "update", "delete", "keep"
EXPECTED: dict[tuple[Row, Row, Row], MergeConflictKind | str] = {
    (None, None, None): KEEP,
    (None, None, "a"): INSERT,
    (None, "a", None): KEEP,
    (None, "a", "a"): KEEP,
    (None, "a", "b"): MergeConflictKind.DIVERGENT_INSERT,
    ("s", None, None): KEEP,
    ("s", None, "s"): KEEP,
    ("s", None, "a"): MergeConflictKind.DELETE_VS_UPDATE,
    ("s", "s", None): DELETE,
    ("s", "s", "s"): KEEP,
    ("s", "s", "a"): UPDATE,
    ("s", "a", None): MergeConflictKind.DELETE_VS_UPDATE,
    ("s", "a", "s"): KEEP,
    ("s", "a", "a"): KEEP,
    ("s", "a", "b"): MergeConflictKind.DIVERGENT_UPDATE,
}


def alike(base: Row, ours: Row, theirs: Row) -> tuple[Row, Row, Row]:
    """The case with its values called by the order in which they come, that of the base `s`."""
    names: dict[Row, Row] = {None: None} if base is None else {None: None, base: "s"}
    for value in (ours, theirs):
        names.setdefault(value, "a" if "a" not in names.values() else "b")
    return names[base], names[ours], names[theirs]


def done(base: Row, side: Row) -> Done:
    if side == base:
        return Done.NOTHING
    return Done.REMOVED if side is None else Done.PUT


def decided(cases: list[tuple[Row, Row, Row]]) -> np.ndarray:
    return decide(
        np.array([base is not None for base, _, _ in cases]),
        np.array([done(base, ours) for base, ours, _ in cases]),
        np.array([done(base, theirs) for base, _, theirs in cases]),
        np.array([ours == theirs for _, ours, theirs in cases]),
    )


def written(ours: Row, theirs: Row, decision: int) -> str:
    """What a decision writes to a target that has this row."""
    if decision == Decision.TAKE:
        return INSERT if ours is None else UPDATE
    return DELETE if decision == Decision.DELETE else KEEP


def test_every_case() -> None:
    assert {alike(*case) for case in CASES} == set(EXPECTED)
    for (base, ours, theirs), decision in zip(CASES, decided(CASES), strict=True):
        wanted = EXPECTED[alike(base, ours, theirs)]
        if isinstance(wanted, MergeConflictKind):
            assert CONFLICTS[Decision(decision)] is wanted, (base, ours, theirs)
        else:
            assert written(ours, theirs, decision) == wanted, (base, ours, theirs)


def test_what_is_written_is_the_row_that_is_wanted() -> None:
    for (base, ours, theirs), decision in zip(CASES, decided(CASES), strict=True):
        if decision in CONFLICTS:
            continue
        result = {Decision.KEEP: ours, Decision.TAKE: theirs, Decision.DELETE: None}[decision]
        assert result == (ours if theirs == base else theirs), (base, ours, theirs)
        if result == ours:
            assert decision == Decision.KEEP, "nothing is written in vain"


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_chosen_side_wins_what_is_in_conflict(side: str) -> None:
    decisions = decided(CASES)
    their_done = np.array([done(base, theirs) for base, _, theirs in CASES])
    chosen = np.full(len(CASES), fill_value=True)
    settled = settle(
        decisions,
        their_done,
        for_ours=chosen if side == "ours" else ~chosen,
        for_theirs=chosen if side == "theirs" else ~chosen,
    )
    assert not is_conflict(settled).any()
    for (_, ours, theirs), before, after in zip(CASES, decisions, settled, strict=True):
        if before not in CONFLICTS:
            assert after == before
            continue
        result = {Decision.KEEP: ours, Decision.TAKE: theirs, Decision.DELETE: None}[after]
        assert result == (ours if side == "ours" else theirs)


def test_a_choice_is_for_its_row_alone() -> None:
    cases: list[tuple[Row, Row, Row]] = [("s", "a", "b"), ("s", "a", "b"), ("s", "a", "b")]
    decisions = decided(cases)
    their_done = np.array([Done.PUT] * 3)
    settled = settle(
        decisions,
        their_done,
        for_ours=np.array([True, False, False]),
        for_theirs=np.array([False, True, False]),
    )
    assert settled.tolist() == [Decision.KEEP, Decision.TAKE, Decision.DIVERGENT_UPDATE]
    assert decisions.tolist() == [Decision.DIVERGENT_UPDATE] * 3, "given arrays stay as they are"


def test_no_rows() -> None:
    nothing = np.zeros(0, np.uint8)
    assert decide(nothing.astype(bool), nothing, nothing, nothing.astype(bool)).tolist() == []
