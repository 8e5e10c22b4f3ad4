"""The river example: its schema, records and queries agree, and stay as they are."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples.river.generate import whole
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.query.lint import SchemaSource, lint_queries
from omnigraph_core.schema.build import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.manifest.snapshot import Snapshot

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "river"
SCHEMA = (EXAMPLE / "schema.pg").read_text()
QUERIES = (EXAMPLE / "queries.gq").read_text()
DIGEST = "8758ed2b639996f97fc17b75e512c3dd83c7d2c428fd88d0f0912baccbc8ab75"
MILL = "Bend paper mill"
NIGHT = {"from": "2030-07-02", "until": "2030-07-03"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Omnigraph]:
    """All of it, loaded with vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
        root = tmp_path_factory.mktemp("river") / "graph"
        with Omnigraph.init(str(root), SCHEMA) as made:
            loaded = made.load(whole(), mode="append")
            assert (loaded.nodes_loaded, loaded.edges_loaded) == (2075, 3491)
            yield made


def ask(graph: Omnigraph, name: str, **params: object) -> list[dict[str, Any]]:
    return graph.query("main", QUERIES, name, params).to_pylist()


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def rows_of(snapshot: Snapshot) -> dict[str, int]:
    return {key: entry.row_count for key, entry in snapshot.tables.items()}


def test_it_is_large_enough_to_show_something() -> None:
    catalog = compile_schema(SCHEMA)
    assert (len(catalog.nodes), len(catalog.edges), len(catalog.interfaces)) == (12, 20, 2)
    records = [
        line for line in (EXAMPLE / "story.jsonl").read_text().splitlines() if line[:1] == "{"
    ]
    assert len(records) > 100


def test_the_file_is_the_same_each_time(tmp_path: Path) -> None:
    out = tmp_path / "made" / "river.jsonl"
    command = [sys.executable, "-m", "examples.river.generate", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, env={"PYTHONHASHSEED": "7"})
    assert hashlib.sha256(out.read_bytes()).hexdigest() == DIGEST
    assert list(out.parent.iterdir()) == [out]


def test_queries_are_clean() -> None:
    source = SchemaSource("file", "schema.pg")
    report = lint_queries(QUERIES, "queries.gq", compile_schema(SCHEMA), source)
    assert (len(report.results), report.findings) == (19, ())


def test_the_way_of_the_water(graph: Omnigraph) -> None:
    below = ask(graph, "downstream", reach="AL-12")
    assert column(below, "code") == ["AL-03", "AL-04", "AL-05", "AL-11"]
    warned = ask(graph, "stations_to_warn", number="IN-2030-1")
    assert [(row["station"], row["crew"]) for row in warned] == [
        ("ST-LONG", "Crew Otter"),
        ("ST-MOUTH", None),
    ]
    suspects = ask(graph, "suspects", number="IN-2030-1")
    assert column(suspects, "facility") == [MILL, "Cinder slate quarry"]


def test_what_is_known_and_what_is_not(graph: Omnigraph) -> None:
    known = ask(graph, "incident", number="IN-2030-1")
    assert {row["cause"] for row in known} == {MILL}
    assert column(known, "measure") == [
        "Second valve for the settling tank",
        "Trout from the upper meadows",
    ]
    (unknown,) = ask(graph, "incident", number="IN-2030-2")
    assert (unknown["cause"], unknown["measure"]) == (None, None)
    assert column(ask(graph, "unexplained_incidents", river="alder"), "number") == ["IN-2030-2"]
    assert column(ask(graph, "stations_without_sensors", river="alder"), "station") == ["ST-BECK"]


def test_values_of_the_night(graph: Omnigraph) -> None:
    low = ask(graph, "low_readings", quantity="oxygen", below=5, **NIGHT)
    assert column(low, "number") == ["AL-R2", "AL-R3"]
    assert column(ask(graph, "evidence", number="IN-2030-1"), "value") == [4.1, 1.7]


def test_sums(graph: Omnigraph) -> None:
    assert ask(graph, "species_of_river", river="alder", least=100) == [
        {"species": "pearl mussel", "surveys": 2, "animals": 105, "latest": "2030-07-05"}
    ]
    (mill,) = [r for r in ask(graph, "facilities_to_visit", least=2) if r["facility"] == MILL]
    assert (mill["incidents"], mill["budget"]) == (2, 57500)
    assert sum(column(ask(graph, "incidents_by_severity"), "incidents")) == 3 + 8 * 8


def test_food_and_other_rivers(graph: Omnigraph) -> None:
    food = column(ask(graph, "food_of", species="kingfisher"), "food")
    assert food == ["brook trout", "mayfly", "water crowfoot"]
    elsewhere = ask(graph, "harmed_elsewhere", number="IN-2030-1", river="alder")
    assert {row["species"] for row in elsewhere} == {"brook trout"}
    assert "Alder" not in column(elsewhere, "river")


def test_search(graph: Omnigraph) -> None:
    found = ask(graph, "similar_incidents", words="paper fibres, low oxygen", river="alder")
    assert column(found, "number")[0] == "IN-2028-1"
    assert sorted(column(found, "number")) == ["IN-2028-1", "IN-2030-1", "IN-2030-2"]
    notes = ask(graph, "search_notes", words="stuck valve", since="2030-06-01")
    assert [(row["note"], row["incident"]) for row in notes[:2]] == [
        ("AL-N1", "IN-2028-1"),
        ("AL-N1", "IN-2030-1"),
    ]


def test_merged_again_it_is_the_same_and_the_past_stays(graph: Omnigraph) -> None:
    seen = graph.snapshot()
    graph.load((EXAMPLE / "story.jsonl").read_bytes(), mode="merge")
    assert rows_of(graph.snapshot()) == rows_of(seen)
    done = graph.mutate(QUERIES, {"number": "IN-2030-1"}, name="close_incident")
    assert done.affected_nodes == 1
    now = ask(graph, "incident", number="IN-2030-1")
    assert {row["status"] for row in now} == {"closed"}
    before = graph.query(seen, QUERIES, "incident", {"number": "IN-2030-1"}).to_pylist()
    assert {row["status"] for row in before} == {"open"}
