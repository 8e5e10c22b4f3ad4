"""A load in parts does what a load in one piece does: same rows, same reports, in every mode.

The parts are done one after the other in this process; that they are done by Spark in the same way
is tested with Spark.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.writes import load_options
from omnigraph_core.spark.ingest import comparing, load, parts, staging, suspects
from omnigraph_core.spark.runner import InProcessRunner
from omnigraph_core.write.sources import open_sources
from tests.support.examples import LONG, seeds
from tests.support.load_worlds import MODES, SCHEMA, content, outcome, records

if TYPE_CHECKING:
    from pathlib import Path

_STEPS = 4


# The last two made reports differ once.
@pytest.mark.parametrize("seed", dict.fromkeys([*seeds(0, 10 if LONG else 4), 33, 40]))
def test_parts_equal_the_whole(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    whole = Omnigraph.init(str(tmp_path / "whole"), SCHEMA)
    parted = Omnigraph.init(str(tmp_path / "parted"), SCHEMA)
    seen = set()
    for step in range(_STEPS):
        data = tmp_path / f"data{step}.jsonl"
        share_bad = rng.choice((0.0, 0.0, 0.02, 0.1, 0.3))
        data.write_text("\n".join(records(rng, rng.randrange(5, 60), share_bad)))
        options = {"mode": rng.choice(MODES), "skip_bad": rng.random() < 0.3}
        monkeypatch.setattr(comparing, "_MANY_TIMES", rng.choice((0, 10**9)))
        monkeypatch.setattr(staging, "_MOST_GROUPS", 1 + seed % 3)
        small = partial(parts.split, part_bytes=max(1, data.stat().st_size // rng.randrange(1, 6)))
        monkeypatch.setattr(load, "split", small)

        expected = outcome(partial(whole.load, str(data), **options))
        given, chosen = open_sources(str(data)), load_options("main", **options)
        found = outcome(partial(load.load, parted._context, given, chosen, InProcessRunner()))
        assert found == expected
        assert content(parted) == content(whole)
        seen.add(expected[0])
    assert parted.verify(is_deep=True).is_sound
    assert not list((tmp_path / "parted" / "_scratch").glob("**/*.*"))
    assert seen


def load_lines(graph: Omnigraph, path: Path, *lines: str) -> Any:
    """Load lines, about three of them in a part."""
    path.write_text("\n".join(lines))
    given, chosen = open_sources(str(path)), load_options("main", mode="merge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "split", partial(parts.split, part_bytes=150))
        return outcome(partial(load.load, graph._context, given, chosen, InProcessRunner()))


@pytest.mark.parametrize("many_times", [0, 10**9])
def test_unique_values_may_change_hands(
    many_times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_MANY_TIMES", many_times)
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    for first, second in (("c1", "c2"), ("c2", "c1")):
        lines = [
            f'{{"type": "Part", "data": {{"sku": "{sku}", "code": "{code}"}}}}'
            for sku, code in (("p1", first), ("p2", second))
        ]
        assert load_lines(graph, tmp_path / "data.jsonl", *lines)[0] == "loaded"


@pytest.mark.parametrize("many_times", [0, 10**9])
def test_an_edge_that_moves_away_makes_room(
    many_times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_MANY_TIMES", many_times)
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    nodes = ['{"type": "Part", "data": {"sku": "p"}}']
    nodes += [f'{{"type": "Bin", "data": {{"label": "b{number}"}}}}' for number in range(30)]

    def held(bin: int, edge: str) -> str:
        return f'{{"edge": "Holds", "from": "b{bin}", "to": "p", "data": {{"id": "{edge}"}}}}'

    full = [held(0, f"e{number}") for number in range(3)]
    path = tmp_path / "data.jsonl"
    assert load_lines(graph, path, *nodes, *full)[0] == "loaded"
    moved = [held(29, "e0"), held(0, "new")]
    assert load_lines(graph, path, *moved)[0] == "loaded"
    assert load_lines(graph, path, held(0, "more"))[0] == "refused"


CARDS = """
node N { k: String @key }
edge E: N -> N @card(CARD) { w: I64? @unique }
"""
N = [f'{{"type": "N", "data": {{"k": "{name}"}}}}' for name in "ABCD"]


def edge(start: str, id: str, end: str = "D", **data: int) -> str:
    record = {"edge": "E", "from": start, "to": end, "data": {"id": id, **data}}
    return json.dumps(record)


CASES: dict[str, tuple[str, list[str], list[str], dict[str, Any]]] = {
    "an edge that takes the place of another's goes on being counted": (
        "0..2",
        [edge("A", "m1"), edge("A", "m2"), edge("C", "m3", w=1)],
        [edge("B", "m2"), edge("C", "m3", w=2), edge("A", "x", w=1)],
        {"mode": "merge", "skip_bad": True},
    ),
    "an edge that is refused stays where it is": (
        "0..2",
        [edge("C", "e"), edge("C", "f")],
        [edge("A", "e"), edge("C", "g")],
        {"mode": "append"},
    ),
    "of an edge that is given twice the last one counts": (
        "2..9",
        [],
        [edge("A", "e"), edge("A", "g"), edge("B", "e"), edge("B", "h")],
        {"mode": "merge"},
    ),
    "the same for more edges than are told apart": (
        "2..",
        [],
        [edge("A", f"e{at}") for at in range(3)] + [edge("D", f"e{at}") for at in range(2)],
        {"mode": "merge"},
    ),
    "rows that are all left out are no commit": (
        "0..2",
        [],
        [edge("nowhere", "e")],
        {"mode": "append", "skip_bad": True},
    ),
}


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("case", CASES)
def test_a_load_in_parts_decides_as_one_in_one_piece(
    case: str, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "_LEAST_PARTITIONS", partitions)
    monkeypatch.setattr(load, "split", partial(parts.split, part_bytes=60))
    card, before, lines, options = CASES[case]
    whole = Omnigraph.init(str(tmp_path / "whole"), CARDS.replace("CARD", card))
    parted = Omnigraph.init(str(tmp_path / "parted"), CARDS.replace("CARD", card))
    data = tmp_path / "data.jsonl"
    for graph in (whole, parted):
        data.write_text("\n".join([*N, *before]))
        graph.load(str(data), mode="append")
    data.write_text("\n".join(lines))
    expected = outcome(partial(whole.load, str(data), **options))
    given, chosen = open_sources(str(data)), load_options("main", **options)
    found = outcome(partial(load.load, parted._context, given, chosen, InProcessRunner()))
    assert found == expected
    assert content(parted) == content(whole)


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_hub_of_missing_ends_beyond_the_limit_is_refused(
    skip_bad: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspects, "_MOST_SUSPECTS", 2)
    graph = Omnigraph.init(str(tmp_path / "graph"), CARDS.replace("CARD", "0.."))
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join([*N, *(edge("A", f"e{at}", "nowhere") for at in range(5))]))
    given, chosen = open_sources(str(data)), load_options("main", skip_bad=skip_bad)
    found = outcome(partial(load.load, graph._context, given, chosen, InProcessRunner()))
    assert found[0] == ("loaded" if skip_bad else "refused")
