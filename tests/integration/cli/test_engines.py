"""`--engine`: where a query of the command line runs, and where it would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

PARTS = "query parts() { match { $p: Part } return { $p.sku } }"
HELD = "query held() { match { $b: Bin $b holds $p } return { $p.sku } order { $p.sku } }"


@pytest.fixture
def stock(folder: Path, full: Omnigraph) -> Omnigraph:
    return full


def test_a_small_query_stays_here(call: Call, stock: Omnigraph) -> None:
    for engine in ("auto", "local"):
        code, output, _ = call("read", "stock", "-e", HELD, "--engine", engine, "--format", "csv")
        assert code == 0
        assert output == call("read", "stock", "-e", HELD, "--format", "csv")[1]


def test_work_goes_to_spark_that_is_asked_to(
    call: Call, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph_core.engine.beyond.importlib.util.find_spec", lambda _: None)
    for given in (
        ("read", "stock", "-e", HELD),
        ("optimize", "stock"),
        ("cleanup", "stock", "--keep", "1"),
        ("index", "ensure", "stock"),
        ("index", "topology", "stock"),
    ):
        code, _, problem = call(*given, "--engine", "spark")
        assert code == 1
        assert "Spark needs the package `pyspark`" in problem
        assert "pip install 'omnigraph[spark]'" in problem


def test_the_choice_is_explained(
    call: Call, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("query", "explain", "stock", "-e", PARTS)
    *_, last = call(*given, "--engine", "auto")[1].splitlines()
    assert last == "  in this process: no step has to do with more than 50,000,000 rows"
    monkeypatch.setenv("OMNIGRAPH_SPARK_ROWS", "1")
    *_, last = call(*given, "--engine", "auto")[1].splitlines()
    assert last == "  on Spark: scan $p: Part reads ~2 rows, more than 1"
    assert "on Spark" not in call(*given)[1]


def test_what_runs_here_anyway_has_no_engine(call: Call, stock: Omnigraph) -> None:
    given = ("query", "explain", "stock", "-e", HELD, "--engine", "spark")
    code, _, problem = call(*given, "--profile")
    assert code == 2
    assert "--engine cannot go with --profile" in problem
    code, _, problem = call("query", "explain", "--schema", "stock.pg", "-e", HELD, *given[5:])
    assert code == 2
    assert "--engine cannot go with --schema" in problem


def test_an_unknown_engine_is_refused(call: Call, stock: Omnigraph) -> None:
    code, _, problem = call("read", "stock", "-e", HELD, "--engine", "duck")
    assert code == 2
    assert "duck" in problem
