"""What a load does: its result, its sources, what it fills in, what it tells while it runs."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import BranchNotFound, ConfigError, DataError
from omnigraph_core.write.progress import Progress, Step
from tests.support.loading import (
    bin_,
    bin_id,
    edge,
    exported,
    holds,
    ids,
    lines,
    needs,
    new_graph,
    note,
    part,
    rows,
    state,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    return new_graph(tmp_path)


def test_the_result(graph: Omnigraph) -> None:
    result = graph.load(
        lines(part("a"), part("b"), note("n"), needs("n", "a"), needs("n", "b")), actor="loader"
    )
    head = graph.list_commits()[0]
    assert [(table.table_key, table.rows_loaded) for table in result.tables] == [
        ("edge:Needs", 2), ("node:Note", 1), ("node:Part", 2),
    ]  # fmt: skip
    assert result.commit == head
    assert head.actor_id == "loader"
    assert result.to_json() == {
        "branch": "main",
        "mode": "merge",
        "nodes_loaded": 3,
        "edges_loaded": 2,
        "node_types_loaded": 2,
        "edge_types_loaded": 1,
        "commit_id": head.graph_commit_id,
        "manifest_version": head.manifest_version,
        "records_rejected": 0,
        "vectors_made": 0,
        "vectors_pending": 0,
        "dry_run": False,
        "repeated": False,
    }


def test_a_load_is_one_commit_of_the_tables_it_touches(graph: Omnigraph) -> None:
    before, count = graph.snapshot(), len(graph.list_commits())
    graph.load(lines(part("a"), bin_("x"), holds("x", "a")))
    after = graph.snapshot()
    assert len(graph.list_commits()) == count + 1
    moved = {key for key in after.tables if after.table(key) != before.table(key)}
    assert moved == {"node:Part", "node:Bin", "edge:Holds"}


@pytest.mark.parametrize("data", [b"", b"\n\n", b"// nothing\n", b"[]"])
@pytest.mark.parametrize("mode", ["merge", "append", "overwrite"])
def test_no_records_make_no_commit(graph: Omnigraph, data: bytes, mode: str) -> None:
    graph.load(lines(part("a")))
    before = state(graph)
    result = graph.load(data, mode=mode)
    assert (result.commit, result.tables) == (None, ())
    assert result.to_json()["commit_id"] is None
    assert state(graph) == before


def test_edges_may_come_before_nodes(graph: Omnigraph) -> None:
    graph.load(lines(holds("x", "a", "h"), needs("n", "a", "w"), part("a"), note("n"), bin_("x")))
    assert rows(graph, "Holds") == {"h": {"from": bin_id("x"), "to": "a"}}
    assert rows(graph, "Needs") == {"w": {"from": "n", "to": "a"}}


def test_edges_alone(graph: Omnigraph) -> None:
    graph.load(lines(part("a"), note("n")))
    result = graph.load(lines(needs("n", "a", "w")))
    assert (result.nodes_loaded, result.edges_loaded) == (0, 1)
    assert ids(graph, "Needs") == ["w"]


@pytest.mark.parametrize("name", ["Needs", "needs", "NEEDS", "nEEDS"])
def test_edge_names_in_any_case(graph: Omnigraph, name: str) -> None:
    graph.load(lines(part("a"), note("n"), edge(name, "n", "a", "w")))
    assert ids(graph, "Needs") == ["w"]
    assert b'"edge":"Needs"' in exported(graph)


def test_several_edges_between_the_same_nodes(graph: Omnigraph) -> None:
    graph.load(lines(part("a"), note("n"), needs("n", "a"), needs("n", "a")))
    assert len(ids(graph, "Needs")) == 2


def test_ids(graph: Omnigraph) -> None:
    """A key is the id; without one a given id is kept, and what has none gets a new one."""
    graph.load(
        lines(
            part("a", id="a"), bin_("x", 7), note("n"), note(), note(),
            needs("n", "a", "w"), {"edge": "Needs", "from": "n", "to": "a"},
        )
    )  # fmt: skip
    assert ids(graph, "Part") == ["a"]
    assert ids(graph, "Bin") == ['["x","7"]']
    notes, edges = ids(graph, "Note"), ids(graph, "Needs")
    assert "n" in notes
    assert "w" in edges
    fresh = [*(set(notes) - {"n"}), *(set(edges) - {"w"})]
    assert len(fresh) == 3
    assert all(len(id) == 26 for id in fresh)


def test_fresh_ids_keep_the_order_of_the_input(graph: Omnigraph) -> None:
    graph.load(lines(*(note(text=str(number)) for number in range(500))))
    texts = [values["text"] for _, values in sorted(rows(graph, "Note").items())]
    assert texts == [str(number) for number in range(500)]


@pytest.mark.parametrize(
    ("given", "stored"),
    [({}, "grey"), ({"colour": "red"}, "red"), ({"colour": None}, None), ({"colour": ""}, "")],
)
def test_a_default_stands_in_for_what_is_left_out(
    graph: Omnigraph, given: dict[str, str], stored: str | None
) -> None:
    graph.load(lines(part("a", **given)))
    assert rows(graph, "Part")["a"].get("colour") == stored


def test_data_may_be_left_out(graph: Omnigraph) -> None:
    graph.load(b'{"type": "Note"}\n{"type": "Note", "data": {}}\n{"type": "Note", "data": null}')
    assert len(ids(graph, "Note")) == 3


def test_an_array_on_one_line(graph: Omnigraph) -> None:
    """Records are told apart although they stand on the same line."""
    given = [note("n", rank=1), note("m"), note("n", rank=2), part("a"), needs("n", "a", "w")]
    result = graph.load(json.dumps(given).encode())
    assert (result.nodes_loaded, result.edges_loaded) == (3, 1)
    assert rows(graph, "Note") == {"m": {}, "n": {"rank": 2}}


def test_a_branch(graph: Omnigraph) -> None:
    graph.load(lines(part("a")))
    graph.branch_create("draft")
    result = graph.load(lines(part("b")), branch="draft")
    assert result.branch == "draft"
    assert ids(graph, "Part", "draft") == ["a", "b"]
    assert ids(graph, "Part") == ["a"]


def test_a_branch_that_is_not_there(graph: Omnigraph) -> None:
    with pytest.raises(BranchNotFound):
        graph.load(lines(part("a")), branch="draft")
    assert graph.branch_list() == ("main",)


@pytest.mark.parametrize("option", ["mode", "embed", "format"])
def test_options_that_are_not_known(graph: Omnigraph, option: str) -> None:
    with pytest.raises(ConfigError, match="sideways"):
        graph.load(lines(part("a")), **{option: "sideways"})  # type: ignore[arg-type]


# Sources


def test_a_file_of_each_kind(graph: Omnigraph, tmp_path: Path) -> None:
    packed = tmp_path / "parts.jsonl.gz"
    packed.write_bytes(gzip.compress(lines(part("packed"))))
    plain = tmp_path / "parts.jsonl"
    plain.write_bytes(lines(part("plain")))
    table = tmp_path / "Part.csv"
    table.write_text("sku,name,stock\ntable,from a table,7\n")
    given = [packed, str(plain), table, lines(part("bytes")), io.BytesIO(lines(part("stream")))]
    result = graph.load(given)
    assert result.nodes_loaded == 5
    assert ids(graph, "Part") == ["bytes", "packed", "plain", "stream", "table"]
    assert rows(graph, "Part")["table"]["stock"] == 7


def test_compressed_bytes(graph: Omnigraph) -> None:
    graph.load(gzip.compress(lines(part("a"))))
    assert ids(graph, "Part") == ["a"]


def test_arrow_rows(graph: Omnigraph) -> None:
    graph.load(pa.table({"sku": ["a", "b"], "name": ["x", "y"]}), type="Part")
    graph.load(pa.table({"id": ["n"], "rank": [3]}), type="node:Note")
    graph.load(pa.table({"from": ["n"], "to": ["b"], "id": ["w"]}), type="edge:needs")
    assert ids(graph, "Part") == ["a", "b"]
    assert rows(graph, "Needs") == {"w": {"from": "n", "to": "b"}}


def test_rows_of_one_load_may_refer_to_other_sources(graph: Omnigraph) -> None:
    graph.load([lines(needs("n", "a", "w")), lines(part("a")), lines(note("n"))])
    assert ids(graph, "Needs") == ["w"]


def test_places_name_the_source(graph: Omnigraph, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_bytes(lines(part("a"), part("b", stock=101)))
    second.write_bytes(lines(note(), note(), part("a")))
    table = pa.table({"sku": ["c", None], "name": ["x", "y"]})
    with pytest.raises(DataError) as caught:
        graph.load([first, second])
    assert [violation.place() for violation in caught.value.violations] == [
        f"{first}:2", f"{second}:3",
    ]  # fmt: skip
    assert f"was given before, at {first}:1" in caught.value.violations[1].message
    with pytest.raises(DataError) as caught:
        graph.load(table, type="Part")
    assert caught.value.message.startswith("row 2: missing required property `sku`")


def test_sources_without_a_name_are_numbered(graph: Omnigraph) -> None:
    with pytest.raises(DataError) as caught:
        graph.load([lines(note(), note(rank=10)), lines(note(rank=10))])
    assert [violation.place() for violation in caught.value.violations] == [
        "input 1:2", "input 2:1",
    ]  # fmt: skip


@pytest.mark.parametrize("key", [None, "once"])
def test_a_compressed_file_that_breaks_off(graph: Omnigraph, key: str | None) -> None:
    before = state(graph)
    cut = gzip.compress(lines(*(note(str(number)) for number in range(2000))))[:-40]
    with pytest.raises(DataError, match="cannot be decompressed"):
        graph.load(cut, idempotency_key=key)
    assert state(graph) == before


# Dry runs


def test_a_dry_run_writes_nothing(graph: Omnigraph, tmp_path: Path) -> None:
    graph.load(lines(part("a")))
    before, files = state(graph), sorted((tmp_path / "graph").rglob("*"))
    result = graph.load(lines(part("a", stock=5), part("b"), note()), dry_run=True)
    assert (result.is_dry_run, result.commit) == (True, None)
    assert (result.nodes_loaded, result.node_types_loaded) == (3, 2)
    assert state(graph) == before
    assert sorted((tmp_path / "graph").rglob("*")) == files


def test_a_dry_run_counts_a_repeated_id_once(graph: Omnigraph) -> None:
    result = graph.load(lines(note("n", rank=1), note("n", rank=2)), dry_run=True)
    assert result.nodes_loaded == 1


# Progress


def told_of(graph: Omnigraph, data: bytes, **options: object) -> list[Progress]:
    told: list[Progress] = []
    graph.load(data, progress=told.append, **options)  # type: ignore[arg-type]
    return told


def totals(told: list[Progress]) -> dict[Step, int]:
    return {progress.step: progress.rows for progress in told}


def test_progress_ascends_to_the_number_of_rows(
    graph: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    articles = [
        {"type": "Article", "data": {"slug": str(number), "body": "x" if number % 2 else None}}
        for number in range(100)
    ]
    told = told_of(graph, lines(*articles, *(note() for _ in range(50))))
    for step in Step:
        rows_of = [progress.rows for progress in told if progress.step is step]
        assert rows_of == sorted(set(rows_of)), "each tells more than the one before"
    assert totals(told) == {
        Step.READ: 150, Step.VALIDATED: 150, Step.STAGED: 150, Step.EMBEDDED: 50,
    }  # fmt: skip


def test_progress_of_a_dry_run(graph: Omnigraph) -> None:
    told = told_of(graph, lines(note(), note()), dry_run=True)
    assert totals(told) == {Step.READ: 2, Step.VALIDATED: 2}


def test_progress_begins_anew_when_the_input_is_read_again(graph: Omnigraph) -> None:
    told = told_of(graph, lines(note("n"), note("n"), note("m")))
    assert totals(told) == {Step.READ: 3, Step.VALIDATED: 3, Step.STAGED: 2}


def test_no_records_tell_nothing(graph: Omnigraph) -> None:
    assert told_of(graph, b"") == []
