"""Loads that find something wrong say the same wherever they run, to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import bad_loads
from tests.support.cases import each
from tests.support.graphs import copied
from tests.support.loading import small_graph

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.bad_loads import BadLoad
    from tests.support.spark import Driver


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[bool, Omnigraph]:
    """The small graph, and the large one: a load that is refused leaves both as they were."""
    root = tmp_path_factory.mktemp("graphs")
    return {False: small_graph(root / "small"), True: bad_loads.large_graph(root / "large")}


@pytest.mark.parametrize("driver", ["local"], indirect=True)
@each("case", bad_loads.USUAL, ids=lambda case: case.name)
def test_reports_are_those_of_one_process(
    driver: Driver, graphs: Mapping[bool, Omnigraph], tmp_path: Path, case: BadLoad
) -> None:
    compare(driver, graphs[case.is_large], tmp_path, case)


@pytest.mark.long("test_reports_are_those_of_one_process, of most of them in a session at hand")
@pytest.mark.parametrize("driver", ["connect"], indirect=True)
@each("case", bad_loads.CASES.values(), ids=lambda case: case.name)
def test_all_reports_are_those_of_one_process(
    driver: Driver, graphs: Mapping[bool, Omnigraph], tmp_path: Path, case: BadLoad
) -> None:
    compare(driver, graphs[case.is_large], tmp_path, case)


def compare(driver: Driver, graph: Omnigraph, directory: Path, case: BadLoad) -> None:
    """Load a case in one process and in parts on Spark, and compare all that is said and left."""
    files, rejects = bad_loads.write_files(case, directory / "input"), str(directory / "rejects")
    here = there = graph.uri
    if not case.is_refused:
        here, there = (copied(graph, directory / name).uri for name in ("here", "there"))
    expected = bad_loads.report_here(case.name, here, files, rejects)
    found = driver.call(bad_loads.report_there, case.name, there, files, rejects)
    assert found == expected
    if case.is_refused:
        assert "nothing is visible: True" in expected
