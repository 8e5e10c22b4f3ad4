"""A process that has just begun answers from what an earlier one derived, not from the edges.

The proof is to take the files with the edges away: traversals still answer, edge properties cannot.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support import big_graphs
from tests.support.big_graphs import PEOPLE, friends
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

TWO_HOPS = """
query q($name: String) {
  match { $p: Person {name: $name}  $p knows $f  $f knows $g }
  return { $f.name, $g.name }
}
"""
FANS = (
    "query q($name: String) { match { $p: Person {name: $name}  $f knows $p } return { $f.name } }"
)
AROUND = """
query q($name: String) {
  match { $p: Person {name: $name}  $p <knows>{1,2} $f }
  return { count($f) as n }
}
"""
SINCE = """
query q($name: String) {
  match { $p: Person {name: $name}  $p $k:knows $f }
  return { $k.since }
}
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph that one process has loaded and asked one question."""
    root = tmp_path_factory.mktemp("cold") / "graph"
    worker = spawn("tests.support.big_graphs:build_and_ask", str(root), TWO_HOPS, "p1")
    assert pairs(worker.wait().result()) == two_hops(1)
    assert derived(root)
    return root


@pytest.fixture
def graph(known: Path, tmp_path: Path) -> Path:
    """A copy of its own for each test: at its address nothing is in memory yet."""
    return Path(shutil.copytree(known, tmp_path / "graph"))


def ask_elsewhere(graph: Path, *asked: tuple[str, str]) -> list[list[dict[str, Any]]]:
    """What a new process finds."""
    worker = spawn("tests.support.big_graphs:ask", str(graph), asked)
    found: list[list[dict[str, Any]]] = worker.wait().result()
    return found


def ask(graph: Path, query: str = TWO_HOPS, name: str = "p1") -> list[dict[str, Any]]:
    return big_graphs.ask(str(graph), [(query, name)])[0]


def derived(graph: Path) -> list[Path]:
    return sorted(graph.glob("_derived/links/*.arrays"))


@contextmanager
def without_edges(graph: Path, files: list[Path]) -> Iterator[None]:
    """These files with edges are gone for a while."""
    assert files
    aside = graph.parent / "aside"
    aside.mkdir()
    for file in files:
        shutil.move(file, aside / file.name)
    try:
        yield
    finally:
        for file in files:
            shutil.move(aside / file.name, file)
        aside.rmdir()


def edge_files(graph: Path) -> list[Path]:
    return sorted(graph.glob("edges/*/data/*"))


def pairs(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    found = {(row["f.name"], row["g.name"]) for row in rows}
    assert len(found) == len(rows)
    return found


def two_hops(person: int) -> set[tuple[str, str]]:
    return {(f"p{friend}", f"p{far}") for friend in friends(person) for far in friends(friend)}


def fans(person: int) -> set[str]:
    return {f"p{other}" for other in range(PEOPLE) if person in friends(other)}


def test_traversals_need_no_edges(graph: Path) -> None:
    asked = ((TWO_HOPS, "p777"), (FANS, "p14"), (AROUND, "p14"), (SINCE, "p1"))
    with without_edges(graph, edge_files(graph)):
        far, fans_of, around, since = ask_elsewhere(graph, *asked)
    assert pairs(far) == two_hops(777)
    assert {row["f.name"] for row in fans_of} == fans(14)
    assert around[0]["n"] > len(two_hops(14))
    assert since == [{"error": "ObjectNotFound"}]
    assert sorted(row["k.since"] for row in ask(graph, SINCE)) == list(range(10))


def test_what_was_appended_since_is_all_that_is_read(graph: Path) -> None:
    before = edge_files(graph)
    new = [
        {"type": "Person", "data": {"name": "new"}},
        {"edge": "Knows", "from": "p1", "to": "new"},
        {"edge": "Knows", "from": "new", "to": "p2"},
    ]
    Omnigraph.open(str(graph)).load("".join(json.dumps(r) + "\n" for r in new).encode())
    with without_edges(graph, before):
        asked = ((TWO_HOPS, "p1"), (TWO_HOPS, "new"), (FANS, "p2"))
        of_old, of_new, fans_of = ask_elsewhere(graph, *asked)
    assert pairs(of_old) == two_hops(1) | {("new", "p2")}
    assert pairs(of_new) == {("p2", f"p{far}") for far in friends(2)}
    assert {row["f.name"] for row in fans_of} == fans(2) | {"new"}


def test_a_branch_shares_it_with_main(graph: Path) -> None:
    og = Omnigraph.open(str(graph))
    og.branch_create("review")
    og.mutate('query q() { insert Person { name: "new" } }', branch="review")
    with without_edges(graph, edge_files(graph)):
        rows = og.query("review", TWO_HOPS, params={"name": "p1"}).to_pylist()
    assert pairs(rows) == two_hops(1)
    assert len(derived(graph)) == 1


def test_a_deleted_edge_is_gone(graph: Path) -> None:
    og = Omnigraph.open(str(graph))
    friend = min(friends(1))
    og.mutate(f'query q() {{ delete Knows where from = "p1" and to = "p{friend}" }}')
    assert pairs(ask(graph)) == {p for p in two_hops(1) if p[0] != f"p{friend}"}


@pytest.mark.parametrize("kept", [0, 4096])
def test_a_damaged_file_only_costs_time(graph: Path, kept: int) -> None:
    (file,) = derived(graph)
    file.write_bytes(file.read_bytes()[:kept])
    assert pairs(ask(graph)) == two_hops(1)


def test_a_file_with_other_bytes_only_costs_time(graph: Path) -> None:
    (file,) = derived(graph)
    content = file.read_bytes()
    half = len(content) // 2
    file.write_bytes(content[:half] + bytes(len(content) - half))
    assert pairs(ask(graph)) == two_hops(1)


def test_no_file_is_made_where_none_is_wanted(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(graph / "_derived")
    monkeypatch.setenv("OMNIGRAPH_DERIVED_FILES", "0")
    assert pairs(ask(graph)) == two_hops(1)
    assert derived(graph) == []
