"""tests/corpus/query and the conformance set on Spark: the answers that the engine gives.

Every case is asked in one of the ways that Spark may take to an answer, in turn.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from tests.support.examples import LONG
from tests.support.query_cases import answer, build_graph, conformance_cases, query_cases
from tests.support.spark_reads import SPARK_WAYS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.query_cases import QueryCase
    from tests.support.read_ways import Way

Graphs = dict[tuple[str, str], "Omnigraph"]


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    """Graphs made so far: cases that share schema and records share one."""
    return {}


def cases() -> list[QueryCase]:
    """Every third in the usual run, for each takes seconds; all of them in a long one."""
    found = [*query_cases(), *conformance_cases()]
    return found if LONG else found[::3]


@pytest.mark.parametrize(
    ("case", "way"),
    [
        pytest.param(case, way, id=f"{case}-{way.name}")
        for case, way in zip(cases(), cycle(SPARK_WAYS), strict=False)
    ],
)
def test_case(
    case: QueryCase,
    way: Way,
    spark: SparkSession,
    graphs: Graphs,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    key = (case.schema, case.records)
    if key not in graphs:
        address = str(tmp_path_factory.mktemp("graph") / "graph")
        graphs[key] = build_graph(address, case.schema, case.records)
    with way.taken(way.new_cache()):
        assert answer(graphs[key], case.asked, "spark") == case.expected
