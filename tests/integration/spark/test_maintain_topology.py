"""Links that executors make are, byte for byte, the file a reader would have written."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.linking import TopologyOutcome, TopologyReport, build_topology
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound, ConfigError, JobFailed
from omnigraph_core.settings import DERIVED_FILES
from omnigraph_core.spark.maintain.topology import build_links
from omnigraph_core.spark.maintain.workers import Executors
from omnigraph_core.spark.runner import InProcessRunner
from omnigraph_core.topology import ends, links
from tests.integration.spark.conftest import ON_THIS_MACHINE
from tests.support.ageing import clean_up
from tests.support.link_worlds import EVERYBODY, KNOWS, LIVES, linked_graph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.spark.runner import Runner
    from tests.support.spark import Driver

KEYS = ("edge:Knows", "edge:Lives", "edge:Haunts")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("linked") / "graph"
    og = linked_graph(root)
    og.mutate('query q() { delete Knows where id = "p1-7" }')
    return root


def files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "_derived" / "links").glob("*")}


def made_by_a_reader(original: Path, root: Path) -> dict[str, bytes]:
    shutil.copytree(original, root)
    Omnigraph.open(str(root)).query("main", EVERYBODY)
    found = files(root)
    assert len(found) == 2
    return found


def build_by(
    og: Omnigraph, runner: Runner, part_rows: int, branch: str = "main", types: Sequence[str] = ()
) -> tuple[TopologyReport, ...]:
    workers = Executors(runner, part_rows)
    return build_topology(og._context, og._derived, branch, types, workers=workers)


def build(runner: Runner, address: str, part_rows: int) -> list[list[object]]:
    made = build_by(Omnigraph.open(address), runner, part_rows)
    return [[item.table_key, item.edges, str(item.outcome)] for item in made]


@pytest.mark.parametrize("part_rows", [10**6, 20_000, 3_333])
def test_files_are_those_of_a_reader(original: Path, tmp_path: Path, part_rows: int) -> None:
    expected = made_by_a_reader(original, tmp_path / "read")
    shutil.copytree(original, tmp_path / "built")
    assert build(InProcessRunner(), str(tmp_path / "built"), part_rows) == [
        ["edge:Knows", KNOWS - 1, "built"],
        ["edge:Lives", LIVES, "built"],
        ["edge:Haunts", 0, "small"],
    ]
    assert files(tmp_path / "built") == expected
    assert not list((tmp_path / "built" / "_scratch").rglob("*-*"))
    again = build(InProcessRunner(), str(tmp_path / "built"), part_rows)
    assert [outcome for _, _, outcome in again] == ["kept", "kept", "small"]


@ON_THIS_MACHINE
def test_executors_make_the_same(driver: Driver, original: Path, tmp_path: Path) -> None:
    expected = made_by_a_reader(original, tmp_path / "read")
    shutil.copytree(original, tmp_path / "built")
    done = driver.call(build, str(tmp_path / "built"), 25_000)
    assert [outcome for _, _, outcome in done] == ["built", "built", "small"]
    assert files(tmp_path / "built") == expected


def test_readers_use_the_file(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("built", "read"):
        shutil.copytree(original, tmp_path / name)
    expected = Omnigraph.open(str(tmp_path / "read")).query("main", EVERYBODY).to_pylist()
    build(InProcessRunner(), str(tmp_path / "built"), 10_000)
    for module, name in ((ends, "all_ends"), (links, "all_ends"), (links, "build_neighbours")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("the edges were read"))
    found = Omnigraph.open(str(tmp_path / "built")).query("main", EVERYBODY).to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_edges_that_lead_nowhere(tmp_path: Path) -> None:
    """No rule lets them in; the file of a reader has them as well."""
    og = linked_graph(tmp_path / "graph", knows=50_002)
    snapshot = og.snapshot()
    people = og.table(snapshot, "node:Person")
    # The links of an older version of the nodes: half of them are not there yet.
    older = next(
        og.snapshot_at_version(version).table("node:Person").physical_version
        for version in range(1, snapshot.manifest_version)
        if og.snapshot_at_version(version).table("node:Person").row_count == 2_000
    )
    from omnigraph_core.storage.dataset import open_table
    from omnigraph_core.storage.derived import DerivedFiles
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.link_files import LinkTables
    from omnigraph_core.topology.memory import ByteCache

    nodes = open_table(people.store, people.location, older)
    edges = og.table(snapshot, "edge:Knows")
    cache = ByteCache(1 << 30)
    dense = DenseTable(nodes, cache)
    made = links.links_of(DenseTable(edges, cache), dense, dense, cache, DerivedFiles(people.store))
    assert (made.sources < 0).any()
    expected = files(tmp_path / "graph")
    shutil.rmtree(tmp_path / "graph" / "_derived")
    build_links(InProcessRunner(), LinkTables(edges, nodes, nodes), part_rows=7_001)
    assert files(tmp_path / "graph") == expected


def test_chosen_types_and_branches(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "graph")
    og = Omnigraph.open(str(tmp_path / "graph"))
    og.branch_create("side")
    og.mutate('query q() { delete Knows where id = "p0-3" }', branch="side")
    (made,) = build_by(og, InProcessRunner(), 10**6, "side", ["knows"])
    assert (made.table_key, made.edges) == ("edge:Knows", KNOWS - 2)
    assert made.outcome is TopologyOutcome.BUILT
    assert len(files(tmp_path / "graph")) == 1
    with pytest.raises(ConfigError, match="no edge type `Nope`, `None`"):
        og.build_topology(edge_types=["Nope", "Lives", "None"])
    with pytest.raises(BranchNotFound):
        og.build_topology(branch="none")


def test_this_process_makes_the_same(original: Path, tmp_path: Path) -> None:
    """Also where a file of other versions would have served a reader."""
    expected = made_by_a_reader(original, tmp_path / "read")
    shutil.copytree(original, tmp_path / "built")
    og = Omnigraph.open(str(tmp_path / "built"))
    made = og.build_topology()
    assert [str(item.outcome) for item in made] == ["built", "built", "small"]
    assert files(tmp_path / "built") == expected
    assert {item.outcome for item in og.build_topology()} == {"kept", "small"}
    og.mutate('query q() { delete Knows where id = "p0-3" }')
    shutil.copytree(tmp_path / "built", tmp_path / "executors")
    (newer, *_) = og.build_topology(edge_types=["Knows"])
    assert (newer.outcome, newer.edges) == (TopologyOutcome.BUILT, KNOWS - 2)
    build(InProcessRunner(), str(tmp_path / "executors"), 20_000)
    here, there = files(tmp_path / "built"), files(tmp_path / "executors")
    assert here.keys() - expected.keys() <= there.keys()
    assert all(there[name] == content for name, content in here.items())


def test_switched_off(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DERIVED_FILES.name, "false")
    with pytest.raises(ConfigError, match="switched off"):
        Omnigraph.open(str(original)).build_topology()


def break_off(_: object) -> None:
    raise RuntimeError("no more")


class BreakingOff(InProcessRunner):
    """Fails in a round of its own choice."""

    def __init__(self, name: str) -> None:
        self._name = name

    def map(self, work, tasks, *, name, on_done=None):  # type: ignore[no-untyped-def]
        chosen = break_off if name == self._name else work
        return super().map(chosen, tasks, name=name, on_done=on_done)


@pytest.mark.parametrize("name", ["resolve ends", "settle edges", "neighbours in"])
def test_a_job_that_fails_leaves_no_file(original: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(original, tmp_path / "graph")
    og = Omnigraph.open(str(tmp_path / "graph"))
    with pytest.raises(JobFailed):
        build_by(og, BreakingOff(name), 20_000)
    assert files(tmp_path / "graph") == {}
    assert not [path for path in (tmp_path / "graph" / "_scratch").rglob("*") if path.is_file()]
    clean_up(og, keep=1)
    assert og.verify(is_deep=True).is_sound
