"""Reads on Spark give one answer wherever it runs: on this machine, a cluster, behind Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark_queries import READS, ask_both, make_graph

if TYPE_CHECKING:
    from tests.support.spark import Driver


USUAL = ("groups", "near")
_OTHERS = [name for name in READS if name not in USUAL]
_LONG = pytest.mark.long("test_query_corpus asks them on this machine; two show every place")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("graph") / "graph")
    make_graph(found)
    return found


@pytest.mark.parametrize("name", [*USUAL, *(pytest.param(name, marks=_LONG) for name in _OTHERS)])
def test_a_read_is_the_same_everywhere(driver: Driver, address: str, name: str) -> None:
    here, there = driver.call(ask_both, address, name)
    assert here
    if "order" in READS[name]:
        assert there == here
    else:
        assert sorted(map(str, there)) == sorted(map(str, here))
