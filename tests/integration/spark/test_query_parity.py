"""A read on Spark finds what the oracle finds, in the order and the types of the engine.

Random graphs with a history, random reads of each state, as for the engine itself; every question
is asked one of the ways that Spark may take to an answer. A failure shows the smallest query that
goes wrong.
"""

from __future__ import annotations

from itertools import cycle
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.examples import LONG, seeds
from tests.support.read_checks import Reader, expected, random_question, report
from tests.support.read_shrink import shrunk
from tests.support.read_worlds import World
from tests.support.spark_reads import SPARK_WAYS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.oracle_search import Answer
    from tests.support.read_queries import Sample
    from tests.support.read_worlds import State

LEAST_WITH_ROWS = 0.5
_PAST = "as it was after "
_ASKED_LATER = ("indexes", "deletions", "compaction")


@pytest.mark.long("test_query_corpus: queries of every kind, asked in the same ways")
@pytest.mark.parametrize("seed", seeds(100, 1))
def test_world(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    world = World(seed, tmp_path)
    turns = cycle([Reader(world.graph, way, way.new_cache(), "spark") for way in SPARK_WAYS])
    asked = with_rows = 0
    for state in filter(is_asked, world.states()):
        rng = Random(f"questions on Spark {seed} {state.name}")
        question = random_question(rng, state)
        if question is not None:
            asked += 1
            with_rows += bool(question[1].rows)
            _require(seed, state, next(turns), *question)
    assert asked
    assert with_rows >= LEAST_WITH_ROWS * asked


def is_asked(state: State) -> bool:
    """In the usual run each state is asked about once: while it is the newest one, or as one of
    the past; in the long run both times."""
    name = state.name.removeprefix(_PAST)
    is_past = name != state.name
    return LONG or (is_past == (name in _ASKED_LATER) and name != "beside a branch")


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
