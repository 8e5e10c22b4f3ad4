"""The engine finds what the oracle finds: random graphs with a history, random reads of each state.

Every question is asked the usual way and one other way. A failure shows the graph, the smallest
query that still goes wrong, and the seed of the world: `pytest -k "world and 7"` runs it again.
"""

from __future__ import annotations

from itertools import cycle
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.examples import LONG, seeds
from tests.support.read_checks import Reader, expected, random_question, report
from tests.support.read_shrink import shrunk
from tests.support.read_ways import WAYS
from tests.support.read_worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.oracle_search import Answer
    from tests.support.read_queries import Sample
    from tests.support.read_worlds import State

WORLDS = 1
QUESTIONS = 11 if LONG else 5
"""Per state; a world has 15 states."""
LEAST_VALID = 0.95
LEAST_WITH_ROWS = 0.6


@pytest.mark.parametrize("seed", seeds(0, WORLDS))
def test_world(tmp_path: Path, seed: int) -> None:
    world = World(seed, tmp_path)
    usual, *others = (Reader(world.graph, way, way.new_cache()) for way in WAYS)
    turns = cycle(others)
    asked = valid = with_rows = 0
    for state in world.states():
        rng = Random(f"questions {seed} {state.name}")
        for _ in range(QUESTIONS):
            asked += 1
            question = random_question(rng, state)
            if question is None:
                continue
            valid += 1
            with_rows += bool(question[1].rows)
            for reader in (usual, next(turns)):
                _require(seed, state, reader, *question)
    assert valid >= LEAST_VALID * asked
    assert with_rows >= LEAST_WITH_ROWS * valid


def _require(seed: int, state: State, reader: Reader, sample: Sample, wanted: Answer) -> None:
    if reader.problem(sample, state, wanted) is None:
        return

    def is_wrong(candidate: Sample) -> bool:
        answer = expected(candidate, state)
        return answer is not None and reader.problem(candidate, state, answer) is not None

    smallest = shrunk(sample, is_wrong)
    answer = expected(smallest, state)
    assert answer is not None
    problem = reader.problem(smallest, state, answer) or "it was wrong, and is right now"
    pytest.fail(report(seed, state, reader.way, smallest, problem), pytrace=False)
