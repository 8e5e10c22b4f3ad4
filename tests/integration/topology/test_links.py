"""Links of real tables: the same whichever way they were made, and what each way reads."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.query.checked import Direction
from omnigraph_core.storage.compact import compact
from omnigraph_core.topology import ends
from omnigraph_core.topology.memory import ByteCache
from tests.support.linked import (
    FIRMS,
    KNOWS,
    PEOPLE,
    WORKS,
    World,
    check,
    links,
    reopened,
)

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

PEOPLE_IDS = [f"p{number}" for number in range(12)]
CIRCLE = [(f"k{n}", f"p{n}", f"p{(n + 1) % 12}") for n in range(12)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Twelve people in a circle, each of whom works somewhere."""
    made = World(str(tmp_path / "graph"))
    made.add_nodes(PEOPLE, PEOPLE_IDS)
    made.add_nodes(FIRMS, ["f0", "f1"])
    made.add_edges(KNOWS, CIRCLE)
    made.add_edges(WORKS, [(f"w{n}", f"p{n}", f"f{n % 2}") for n in range(12)])
    return made


def data_files(table: Table) -> list[Path]:
    return sorted(Path(table.uri, "data").iterdir())


def test_parallel_edges_loops_and_edges_to_nowhere(world: World) -> None:
    edges = [("a", "p0", "p0"), ("b", "p0", "p1"), ("c", "gone", "p1"), ("d", "p1", "gone")]
    world.add_edges(KNOWS, [*edges, ("e", "p0", "p0"), ("f", "p1", "p0")])
    found = links(world.tables)
    check(found, world.tables)
    assert found.nbytes > 0


def test_between_two_types_there_is_no_both(world: World) -> None:
    found = links(world.tables, edge=WORKS)
    check(found, world.tables, WORKS)
    with pytest.raises(InvariantBroken, match="nodes of one type"):
        found.both()


def test_empty_tables(tmp_path: Path) -> None:
    world = World(str(tmp_path))
    check(links(world.tables), world.tables)
    world.add_edges(KNOWS, CIRCLE)
    check(links(world.tables), world.tables)


def test_the_same_versions_share_everything(world: World) -> None:
    cache = ByteCache(2**28)
    one = links(world.tables, cache)
    again = links(reopened(world.root, world.pinned()), cache)
    assert again is one
    assert again.out() is one.out()
    assert again.distinct(Direction.OUT) is one.out(), "without parallels it is the same"


def test_names_of_the_directions(world: World) -> None:
    found = links(world.tables)
    assert found.out() is found.by_edge(Direction.OUT)
    assert found.into() is found.by_edge(Direction.IN)
    assert found.both() is found.by_edge(Direction.BOTH)


@pytest.mark.parametrize("deleted", [[], ["k4", "k9"]], ids=["all live", "gaps"])
def test_resident_columns_are_used(world: World, deleted: list[str]) -> None:
    """Ids that are in memory are not read again."""
    from omnigraph_core.topology.dense import DenseTable

    if deleted:
        world.delete(KNOWS, deleted)
    cache = ByteCache(2**28)
    DenseTable(world.tables[KNOWS], cache).preload(["src", "dst"])
    DenseTable(world.tables[PEOPLE], cache).preload(["id"])
    for file in (*data_files(world.tables[KNOWS]), *data_files(world.tables[PEOPLE])):
        file.rename(f"{file}.away")
    found = links(world.tables, cache)
    for file in (*data_files(world.tables[KNOWS]), *data_files(world.tables[PEOPLE])):
        file.rename(str(file).removesuffix(".away"))
    check(found, world.tables)


def test_many_edges_are_resolved_some_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add_edges(KNOWS, [("x", "p3", "p9"), ("y", "nobody", "p9")])
    world.add_edges(KNOWS, [("z", "p11", "p0")])
    monkeypatch.setattr(ends, "_MOST_ROWS", 1)  # a batch each
    check(links(world.tables), world.tables)


def test_a_cache_too_small_for_anything_changes_nothing(world: World) -> None:
    cache = ByteCache(64)
    check(links(world.tables, cache), world.tables)
    world.add_edges(KNOWS, [("x", "p3", "p9")])
    check(links(world.tables, cache), world.tables)


@pytest.mark.parametrize("is_warm", [True, False])
def test_only_new_edges_are_read(world: World, is_warm: bool) -> None:
    """The files of older ones are gone, and of the nodes only ids are needed."""
    cache = ByteCache(2**28)
    before = links(world.tables, cache)
    if is_warm:
        for direction in Direction:
            before.by_edge(direction)
    old = data_files(world.tables[KNOWS])
    world.add_edges(KNOWS, [("x", "p3", "p9"), ("y", "p3", "p9"), ("z", "p5", "nobody")])
    after = world.tables
    kept = [Path(f"{file}.away") for file in old]
    for file, away in zip(old, kept, strict=True):
        file.rename(away)
    found = links(reopened(world.root, world.pinned()), cache)
    if not is_warm:
        found.out()
    for file, away in zip(old, kept, strict=True):
        away.rename(file)
    check(found, after)


def test_a_node_that_comes_late_has_its_edges(world: World) -> None:
    cache = ByteCache(2**28)
    world.add_edges(KNOWS, [("x", "p3", "late"), ("y", "late", "late"), ("z", "p4", "never")])
    links(world.tables, cache).both()
    world.add_nodes(PEOPLE, ["late"])
    found = links(world.tables, cache)
    check(found, world.tables)
    world.add_edges(KNOWS, [("v", "late", "p0")])
    check(links(world.tables, cache), world.tables)


def test_rewritten_and_deleted_rows(world: World) -> None:
    cache = ByteCache(2**28)
    for change in (
        lambda: world.rewrite_nodes(PEOPLE, ["p4", "p7"]),
        lambda: world.delete(KNOWS, ["k4", "k9"]),
        lambda: world.delete(PEOPLE, ["p0"]),
        lambda: world.add_nodes(PEOPLE, ["p0"]),
        lambda: world.rewrite_nodes(FIRMS, ["f0"]),
    ):
        for edge in (KNOWS, WORKS):
            made = links(world.tables, cache, edge=edge)
            made.out(), made.into()
        change()
        for edge in (KNOWS, WORKS):
            check(links(world.tables, cache, edge=edge), world.tables, edge)


def test_back_to_an_older_version(world: World) -> None:
    cache = ByteCache(2**28)
    past = dict(world.tables)
    world.delete(KNOWS, ["k4"])
    world.delete(PEOPLE, ["p9"])
    links(world.tables, cache).both()
    check(links(past, cache), past)


def test_compacted_tables(world: World) -> None:
    cache = ByteCache(2**28)
    world.add_edges(KNOWS, [("x", "p3", "p9")])
    world.delete(KNOWS, ["k0"])
    links(world.tables, cache).both()
    compacted = compact(world.tables[KNOWS])
    assert compacted is not None
    world.tables[KNOWS] = compacted
    check(links(world.tables, cache), world.tables)


@pytest.mark.parametrize("seed", range(12))
def test_a_history_of_changes(tmp_path: Path, seed: int) -> None:
    """Whatever happens, links made from those before are those built from nothing."""
    rng = random.Random(seed)
    world, cache = World(str(tmp_path)), ByteCache(2**28)
    people = [f"p{number}" for number in range(30)]
    alive: dict[str, list[str]] = {PEOPLE: [], KNOWS: []}
    for step in range(14):
        roll = rng.random()
        if roll < 0.3 or not alive[PEOPLE]:
            new = rng.sample([p for p in people if p not in alive[PEOPLE]] or ["?"], 1)
            more = [p for p in people if p not in alive[PEOPLE]][: rng.randrange(1, 9)]
            ids = sorted({*new, *more} - {"?"})
            if ids:
                world.add_nodes(PEOPLE, ids)
                alive[PEOPLE] += ids
        elif roll < 0.7 or not alive[KNOWS]:
            count = rng.randrange(1, 20)
            ids = [f"k{step}-{number}" for number in range(count)]
            world.add_edges(KNOWS, [(id, rng.choice(people), rng.choice(people)) for id in ids])
            alive[KNOWS] += ids
        elif roll < 0.85:
            location = rng.choice([PEOPLE, KNOWS])
            gone = rng.sample(alive[location], rng.randrange(1, 1 + len(alive[location]) // 3 or 2))
            world.delete(location, gone)
            alive[location] = [id for id in alive[location] if id not in gone]
        else:
            world.rewrite_nodes(PEOPLE, rng.sample(alive[PEOPLE], min(3, len(alive[PEOPLE]))))
        found = links(world.tables, cache)
        check(found, world.tables)
