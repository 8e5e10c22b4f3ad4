"""Reads on Spark give one answer wherever it runs: on this machine, a cluster, behind Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.spark.query import fuse
from omnigraph_core.spark.runner import SparkRunner
from tests.support.spark_queries import READS, ask_both, make_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark import Driver


USUAL = {
    "local": {"groups", "weighted", "words", "near", "fused"},
    "cluster": {"groups"},
    "connect": {"groups", "near"},
}
_LONG = pytest.mark.long("test_query_corpus; other reads in the same place, this one in another")
PLACES = [
    pytest.param(place, name, marks=() if name in usual else _LONG)
    for place, usual in USUAL.items()
    for name in READS
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("graph") / "graph")
    make_graph(found)
    return found


@pytest.mark.parametrize(("driver", "name"), PLACES, indirect=["driver"])
def test_a_read_is_the_same_everywhere(driver: Driver, address: str, name: str) -> None:
    here, there = driver.call(ask_both, address, name)
    assert here
    if "order" in READS[name]:
        assert there == here
    else:
        assert sorted(map(str, there)) == sorted(map(str, here))


def test_many_ranked_rows_are_counted_by_partition(
    spark: SparkSession, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuse, "FEW_RANKED", 0)
    here, there = ask_both(SparkRunner(spark), address, "fused")
    assert there == here
