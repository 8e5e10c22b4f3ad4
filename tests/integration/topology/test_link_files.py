"""Links in files: what a process finds there it need not read from the tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.constants import DERIVED_MIN_ROWS, Constant
from omnigraph_core.settings import CACHE_DIR
from omnigraph_core.storage.derived import list_derived, read_pins
from omnigraph_core.storage.objects import delete_all, list_objects
from omnigraph_core.storage.session import open_store
from omnigraph_core.topology import links as links_module
from omnigraph_core.topology.memory import ByteCache
from tests.support.linked import KNOWS, PEOPLE, World, check, links, reopened
from tests.support.processes import spawn

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.links import Links

PEOPLE_IDS = [f"p{number}" for number in range(40)]
CIRCLE = [(f"k{n}", f"p{n}", f"p{(n + 1) % 40}") for n in range(40)]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written for as few edges as there are here."""
    monkeypatch.setattr(links_module, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 10, ""))


@pytest.fixture
def world(graph_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(CACHE_DIR.name, str(tmp_path / "copies"))
    made = World(graph_root)
    made.add_nodes(PEOPLE, PEOPLE_IDS)
    made.add_edges(KNOWS, CIRCLE)
    return made


@pytest.fixture
def local(tmp_path: Path) -> World:
    made = World(str(tmp_path / "graph"))
    made.add_nodes(PEOPLE, PEOPLE_IDS)
    made.add_edges(KNOWS, CIRCLE)
    return made


def kept(world: World) -> list[str]:
    return [file.path for file in list_derived(open_store(world.root))]


def elsewhere(world: World) -> Links:
    """The links as another process gets them."""
    return links(reopened(world.root, world.pinned()), has_files=True)


def data_of(table: Table) -> list[str]:
    return [item.path for item in list_objects(table.store, f"{table.location}/data")]


def test_a_kept_file_is_all_that_is_read(world: World, tmp_path: Path) -> None:
    check(links(world.tables, has_files=True), world.tables)
    (path,) = kept(world)
    assert path.startswith("_derived/links/edges_knows.")
    shutil.rmtree(tmp_path / "copies", ignore_errors=True)
    for table in world.tables.values():
        delete_all(table.store, data_of(table))
    found = elsewhere(world)
    assert found.out().targets.tolist() == [*range(1, 40), 0]
    assert found.into().degrees().tolist() == [1] * 40
    assert found.both().degrees().tolist() == [2] * 40
    assert found.sources.tolist() == list(range(40))


def test_pins_are_the_three_tables(world: World) -> None:
    links(world.tables, has_files=True)
    (file,) = list_derived(open_store(world.root))
    pinned = world.pinned()
    expected = {(location, pinned[location]) for location in (KNOWS, PEOPLE)}
    assert read_pins(open_store(world.root), file) == expected


def test_a_newer_version_begins_from_the_file(world: World) -> None:
    links(world.tables, has_files=True)
    old = data_of(world.tables[KNOWS])
    world.add_edges(KNOWS, [("x", "p3", "p9"), ("y", "p3", "late")])
    world.add_nodes(PEOPLE, ["late"])
    store = world.tables[KNOWS].store
    rows = world.tables[KNOWS].read()
    delete_all(store, old)
    found = elsewhere(world)
    assert len(found.sources) == rows.num_rows == 42
    assert found.out().targets[slice(*found.out().offsets[3:5])].tolist() == [4, 9, 40]
    assert len(kept(world)) == 1, "too little has changed to write another one"


def test_rows_that_went_or_moved_begin_from_the_file(world: World) -> None:
    links(world.tables, has_files=True)
    world.delete(KNOWS, ["k5"])
    world.rewrite_nodes(PEOPLE, ["p7", "p30"])
    check(elsewhere(world), world.tables)
    assert len(kept(world)) == 1


def test_when_the_older_version_is_gone_all_is_read(local: World) -> None:
    """What was deleted before the file was written, only the version it was written of tells."""
    local.delete(KNOWS, ["k9"])
    links(local.tables, has_files=True)
    before = local.tables[KNOWS]
    local.delete(KNOWS, ["k5"])
    manifest = Path(before.uri, "_versions", f"d{before.physical_version}.manifest")
    manifest.unlink()
    check(elsewhere(local), local.tables)
    assert len(kept(local)) == 2


def test_much_growth_is_kept_again(world: World) -> None:
    cache = ByteCache(2**28)
    links(world.tables, cache, has_files=True)
    counts = []
    covered: list[str] = []
    for number in range(20):
        world.add_edges(KNOWS, [(f"x{number}", "p1", "p2")])
        check(links(world.tables, cache, has_files=True), world.tables)
        counts.append(len(kept(world)))
        covered = covered or (data_of(world.tables[KNOWS]) if counts[-1] == 2 else [])
    assert counts == [1] * 13 + [2] * 7, "14 of 54 are a quarter"
    delete_all(world.tables[KNOWS].store, covered)
    assert len(elsewhere(world).sources) == 60


def test_the_best_of_several_files_is_the_base(local: World) -> None:
    past = dict(local.tables)
    local.add_edges(KNOWS, [(f"x{n}", "p1", f"p{n}") for n in range(40)])
    links(local.tables, has_files=True)
    grown = data_of(local.tables[KNOWS])
    links(past, has_files=True)  # newer as a file, older as a version
    local.add_edges(KNOWS, [("y", "p1", "p1")])
    assert len(kept(local)) == 2
    delete_all(local.tables[KNOWS].store, grown)
    assert len(elsewhere(local).sources) == 81


def test_small_tables_have_no_files(local: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_module, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 41, ""))
    links(local.tables, has_files=True)
    assert kept(local) == []
    local.add_edges(KNOWS, [("x", "p3", "p9")])
    links(local.tables, has_files=True)
    assert len(kept(local)) == 1
    assert DERIVED_MIN_ROWS.value == 50_000


@pytest.mark.parametrize("keep", [0, 10, 300, -1])
def test_a_damaged_file_is_made_again(local: World, keep: int) -> None:
    links(local.tables, has_files=True)
    (path,) = (Path(local.root, name) for name in kept(local))
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    check(elsewhere(local), local.tables)
    assert path.read_bytes() == whole


def test_a_file_of_something_else_is_made_again(local: World) -> None:
    """Right in form, wrong in what it says."""
    from omnigraph_core.storage.derived import DerivedFiles

    links(local.tables, has_files=True)
    (name,) = kept(local)
    files = DerivedFiles(open_store(local.root))
    key = Path(name).name.removesuffix(".arrays")
    found = files.load("links", key)
    assert found is not None
    arrays, about = dict(found.arrays), dict(found.about)
    wrong = [
        (arrays, {**about, "format": 2}),
        (arrays, {}),
        ({}, about),
        ({**arrays, "sources": arrays["sources"][1:]}, about),
        ({**arrays, "out.offsets": arrays["out.offsets"][1:]}, about),
        ({**arrays, "in.edges": arrays["in.edges"][1:]}, about),
        (arrays, {**about, "is_simple": [True]}),
        (arrays, {**about, "edges": {**about["edges"], "version": "7"}}),
        (arrays, {**about, "sources": {"fragments": [[1]]}}),
    ]
    for others, told in wrong:
        files.save("links", key, others, told)
        check(elsewhere(local), local.tables)


def links_elsewhere(root: str, pinned: dict[str, int]) -> list[int]:
    found = links(reopened(root, pinned), has_files=True)
    return [int(number) for number in found.out().targets]


def test_processes_may_make_them_at_once(tmp_path: Path) -> None:
    """As many edges as it takes for a file, unaltered."""
    world = World(str(tmp_path / "graph"))
    world.add_nodes(PEOPLE, PEOPLE_IDS)
    count = DERIVED_MIN_ROWS.value
    world.add_edges(KNOWS, ((f"k{n}", f"p{n % 40}", f"p{n % 39}") for n in range(count)))
    target = f"{links_elsewhere.__module__}:{links_elsewhere.__name__}"
    with (
        spawn(target, world.root, world.pinned()) as one,
        spawn(target, world.root, world.pinned()) as other,
    ):
        first, second = one.next_line(), other.next_line()
    assert first == second
    assert len(kept(world)) == 1
    check(elsewhere(world), world.tables)
