"""A folder with an empty graph of parts and bins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.process import run_here

if TYPE_CHECKING:
    from collections.abc import Callable

Call: TypeAlias = "Callable[..., tuple[int, str, str]]"

SCHEMA = """
node Part {
  sku: String @key
  name: String?
  price: F64?
  state: enum(new, used)?
  note: String?
  vector: Vector(4)? @embed("note")
  drawing: Blob?
  @range(price, 0..)
}

node Bin {
  code: String @key
}

edge Holds: Bin -> Part {
  count: I64?
}
"""
STOCK = """\
// what is where
{"type":"Part","data":{"sku":"M8","name":"bolt","price":0.1,"note":"zinc plated"}}
{"type":"Part","data":{"sku":"M10","name":"Mutter","drawing":"base64:aGV4"}}

{"type":"Bin","data":{"code":"A1"}}
{"edge":"Holds","from":"A1","to":"M8","data":{"id":"h1","count":40}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With `stock.pg`, `stock.jsonl` and the empty graph `stock`."""
    (tmp_path / "stock.pg").write_text(SCHEMA)
    (tmp_path / "stock.jsonl").write_text(STOCK)
    Omnigraph.init(str(tmp_path / "stock"), SCHEMA)
    return tmp_path


@pytest.fixture
def graph(folder: Path) -> Omnigraph:
    """The same graph, seen from this process."""
    return Omnigraph.open(str(folder / "stock"))


@pytest.fixture
def full(folder: Path, graph: Omnigraph) -> Omnigraph:
    """The graph with the stock in it, its one vector still to be made."""
    graph.load(folder / "stock.jsonl", embed="off")
    return graph


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command in the folder with the variables of this process, which a test can set.

    Gives the exit code and what went to both streams.
    """
    monkeypatch.chdir(folder)

    def run(*arguments: object) -> tuple[int, str, str]:
        done = run_here(*arguments, folder=Path.cwd(), environment=dict(os.environ))
        return done.returncode, done.stdout, done.stderr

    return run
