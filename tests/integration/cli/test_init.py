"""`omnigraph init` as a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path


def test_makes_an_empty_graph(folder: Path) -> None:
    done = omnigraph("init", "new", "--schema", "stock.pg", "--as", "ada", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "initialized new\n", "")
    graph = Omnigraph.open(str(folder / "new"))
    assert list(graph.snapshot().tables) == ["edge:Holds", "node:Bin", "node:Part"]
    assert graph.snapshot().commit.actor_id == "ada"


def test_the_address_may_be_an_option(folder: Path) -> None:
    done = omnigraph("init", "--uri", folder / "new", "--schema", "stock.pg", folder=folder)
    assert (done.returncode, done.stdout) == (0, f"initialized {folder / 'new'}\n")
    assert Omnigraph.open(str(folder / "new")).branch_list() == ("main",)


def test_a_graph_that_is_there_stays(folder: Path, graph: Omnigraph) -> None:
    before = graph.snapshot()
    done = omnigraph("init", "stock", "--schema", "stock.pg", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: there is a graph at {folder / 'stock'}")
    assert graph.snapshot() == before


def test_a_wrong_schema_is_shown_where_it_stands(folder: Path) -> None:
    (folder / "wrong.pg").write_text("node A { x: Strin }\nnode B { y: Integer }\n")
    done = omnigraph("init", "new", "--schema", "wrong.pg", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "wrong.pg:1:13" in done.stderr
    assert "wrong.pg:2:13" in done.stderr
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--schema", "stock.pg"], 2, "URI must be provided"),
        (["new", "--uri", "other", "--schema", "stock.pg"], 2, "not both"),
        (["new"], 2, "--schema"),
        (["new", "--schema", "none.pg"], 1, "cannot read schema file none.pg"),
        (["ftp://host/new", "--schema", "stock.pg"], 1, "ftp"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], code: int, text: str) -> None:
    done = omnigraph("init", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
