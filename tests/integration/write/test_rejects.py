"""Bad records beside good ones: what is loaded, what is left out, what the reject file says."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.errors import ConfigError, DataError
from tests.support.loading import (
    bin_id,
    edge,
    exported,
    holds,
    ids,
    lines,
    needs,
    note,
    part,
    rows,
    small_graph,
    state,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.write.load_model import LoadResult


@pytest.fixture
def rejects(tmp_path: Path) -> Path:
    return tmp_path / "out" / "rejects.jsonl"


def rejected(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def counts(result: LoadResult) -> tuple[int, int, int]:
    return result.nodes_loaded, result.edges_loaded, result.records_rejected


MIXED = (
    part("p1"),
    part("p2", stock=500, code="x"),
    "// a comment",
    '{"type": "Note", "data": {"text": "ü"',
    holds("south", "nowhere", "e1"),
    part("p3", serial="S1"),
    part("p4"),
    note(),
)
BAD_LINES = [2, 4, 5, 6]


def test_the_file_holds_every_bad_record_and_why(graph: Omnigraph, rejects: Path) -> None:
    before = state(graph)
    with pytest.raises(DataError):
        graph.load(lines(*MIXED), rejects=rejects)
    assert state(graph) == before, "without leave to pass over them nothing is loaded"
    found = rejected(rejects)
    assert [entry["line"] for entry in found] == BAD_LINES
    assert found[0] == {
        "file": None,
        "line": 2,
        "problems": [
            "@range violation on Part.stock: 500 is not in 0..100",
            "@check violation on Part.code: 'x' does not match '^[A-Z]{2}$'",
        ],
        "record": json.dumps(MIXED[1]),
    }
    assert found[1]["record"] == MIXED[3]
    assert "ü" in rejects.read_text()
    assert [json.loads(found[place]["record"]) for place in (2, 3)] == [MIXED[4], MIXED[5]]


def test_good_records_are_loaded_if_asked_for(graph: Omnigraph, rejects: Path) -> None:
    result = graph.load(lines(*MIXED), rejects=rejects, skip_bad=True)
    assert counts(result) == (3, 0, 4)
    assert ids(graph, "Part") == ["a", "b", "c", "p1", "p4"]
    assert [entry["line"] for entry in rejected(rejects)] == BAD_LINES


def test_without_a_file_too(graph: Omnigraph) -> None:
    assert counts(graph.load(lines(*MIXED), skip_bad=True)) == (3, 0, 4)


def test_a_dry_run_tells_the_same(graph: Omnigraph, rejects: Path) -> None:
    before = state(graph)
    result = graph.load(lines(*MIXED), rejects=rejects, skip_bad=True, dry_run=True)
    assert counts(result) == (3, 0, 4)
    assert [entry["line"] for entry in rejected(rejects)] == BAD_LINES
    assert state(graph) == before


def test_mended_records_can_be_loaded(graph: Omnigraph, rejects: Path) -> None:
    graph.load(lines(part("p1"), part("p2", stock=500)), rejects=rejects, skip_bad=True)
    mended = [entry["record"].replace("500", "50") for entry in rejected(rejects)]
    graph.load(lines(*mended), rejects=rejects)
    assert rows(graph, "Part")["p2"]["stock"] == 50
    assert rejects.read_text() == "", "an old file would mislead"


def test_an_edge_of_a_rejected_node_is_rejected(graph: Omnigraph, rejects: Path) -> None:
    result = graph.load(
        lines(
            holds("south", "p1", "e1"), part("p1", stock=500), part("p2"),
            holds("south", "p2", "e2"), part("p3", shape=[1]), holds("south", "p3", "e3"),
        ),
        rejects=rejects,
        skip_bad=True,
    )  # fmt: skip
    assert counts(result) == (1, 1, 4)
    assert ids(graph, "Holds") == ["e2", "h1"]
    found = {entry["line"]: entry["problems"] for entry in rejected(rejects)}
    assert sorted(found) == [1, 2, 5, 6]
    assert found[1] == ["dst 'p1' not found in Part (edge Holds 'e1')"]


def test_what_falls_with_what_fell(graph: Omnigraph) -> None:
    """A node falls for its value, its edges with it, and a source that needs one of those."""
    result = graph.load(
        lines(note("m"), part("p1", serial="S1"), needs("m", "p1", "w2"), part("p2")),
        skip_bad=True,
    )
    assert counts(result) == (2, 0, 2)
    assert ids(graph, "Needs") == ["w1"]
    assert ids(graph, "Note") == ["m", "n"], "a note without edges is not looked at"


def test_of_duplicates_the_first_stays(graph: Omnigraph, rejects: Path) -> None:
    result = graph.load(
        lines(
            part("p1", serial="X"), part("p2", serial="X"), part("p3", serial="X"),
            part("p4"), part("p4", stock=1), holds("south", "p4", "e1"), holds("south", "p4", "e2"),
        ),
        rejects=rejects,
        skip_bad=True,
    )  # fmt: skip
    assert counts(result) == (2, 1, 4)
    assert [entry["line"] for entry in rejected(rejects)] == [2, 3, 5, 7]
    assert rows(graph, "Part")["p1"]["serial"] == "X"
    assert "stock" not in rows(graph, "Part")["p4"]
    assert ids(graph, "Holds") == ["e1", "h1"]


def test_of_too_many_edges_the_first_stay(graph: Omnigraph) -> None:
    given = [holds("south", sku, f"e{sku}") for sku in "cba"]
    result = graph.load(lines(*given), skip_bad=True)
    assert counts(result) == (0, 2, 1)
    assert ids(graph, "Holds") == ["eb", "ec", "h1"]


def test_append_leaves_out_what_exists(graph: Omnigraph, rejects: Path) -> None:
    given = lines(part("a"), part("d"))
    result = graph.load(given, mode="append", rejects=rejects, skip_bad=True)
    assert counts(result) == (1, 0, 1)
    assert rows(graph, "Part")["a"]["serial"] == "S1"
    assert rejected(rejects)[0]["problems"] == [
        "@unique violation on Part.sku: key 'a' already exists"
    ]


def test_of_repeated_records_the_last_good_one_counts(graph: Omnigraph) -> None:
    result = graph.load(
        lines(note("z", rank=1), note("z", rank=2), note("z", rank=99)), skip_bad=True
    )
    assert counts(result) == (1, 0, 1)
    assert rows(graph, "Note")["z"] == {"rank": 2}


def test_what_no_record_is_to_blame_for_is_refused(graph: Omnigraph, rejects: Path) -> None:
    before = state(graph)
    given = lines(part("b", serial="X"), part("c", serial="X"))
    with pytest.raises(DataError) as caught:
        graph.load(given, mode="overwrite", rejects=rejects, skip_bad=True)
    assert state(graph) == before
    lost = [found.id for found in caught.value.violations if found.rule == "orphan"]
    assert sorted(map(str, lost)) == ["h1", "w1"]
    assert caught.value.counts == {"orphan": 2, "unique": 1}
    assert [entry["line"] for entry in rejected(rejects)] == [2]


def test_an_overwrite_does_not_empty_a_table(graph: Omnigraph) -> None:
    before = state(graph)
    for bad in (note("m", rank=50), note("m", rank="high")):
        with pytest.raises(DataError):
            graph.load(lines(bad), mode="overwrite", skip_bad=True)
    assert state(graph) == before


def test_leaving_a_record_out_can_mend_what_it_broke(graph: Omnigraph) -> None:
    """The edge would have moved away from its note, which needs one."""
    graph.load(lines(note("m"), needs("m", "b", "w2")))
    result = graph.load(lines(needs("n", "nowhere", "w2"), note("o")), skip_bad=True)
    assert counts(result) == (1, 0, 1)
    assert rows(graph, "Needs")["w2"] == {"from": "m", "to": "b"}


def test_a_record_replaced_by_a_bad_one_counts(graph: Omnigraph) -> None:
    given = lines(holds("south", "b", "e1"), holds("south", "nowhere", "e1"))
    assert counts(graph.load(given, skip_bad=True)) == (0, 1, 1)
    assert rows(graph, "Holds")["e1"]["to"] == "b"


def test_the_reject_file_is_no_input(graph: Omnigraph, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(part("p", stock=500)))
    with pytest.raises(ConfigError, match="is an input"):
        graph.load(path, rejects=path)
    assert path.read_bytes() == lines(part("p", stock=500))


def test_nothing_good_is_nothing_to_commit(graph: Omnigraph) -> None:
    before = state(graph)
    result = graph.load(lines(part("p", stock=500), "{"), skip_bad=True)
    assert (result.commit, *counts(result)) == (None, 0, 0, 2)
    assert state(graph) == before


def test_more_than_an_error_would_list(graph: Omnigraph, rejects: Path) -> None:
    given = [part(f"p{number}", stock=number) for number in range(300)]
    result = graph.load(lines(*given), rejects=rejects, skip_bad=True)
    assert counts(result) == (101, 0, 199)
    assert [entry["line"] for entry in rejected(rejects)] == list(range(102, 301))


def test_an_array_on_one_line(graph: Omnigraph) -> None:
    given = [part("p1", serial="X"), part("p2", serial="X"), part("p3"), note("m")]
    result = graph.load(json.dumps(given).encode(), skip_bad=True)
    assert counts(result) == (3, 0, 1)
    assert ids(graph, "Part") == ["a", "b", "c", "p1", "p3"]


# Sources


def test_several_sources(graph: Omnigraph, rejects: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl.gz"
    first.write_bytes(lines(part("p1"), part("p2", stock=500)))
    second.write_bytes(gzip.compress(lines(holds("south", "p2"), part("p3", code="x"))))
    table = tmp_path / "Part.csv"
    table.write_text("sku,name,stock\nt1,one,1\nt2,two,many\nt3,three,500\n")
    result = graph.load([first, second, table], rejects=rejects, skip_bad=True)
    assert counts(result) == (2, 0, 5)
    found = rejected(rejects)
    assert [(entry["file"], entry["line"]) for entry in found] == [
        (str(first), 2), (str(second), 1), (str(second), 2), (str(table), 3), (str(table), 4),
    ]  # fmt: skip
    assert json.loads(found[4]["record"]) == {"sku": "t3", "name": "three", "stock": "500"}


def test_sources_without_a_name_are_told_apart(graph: Omnigraph, rejects: Path) -> None:
    given = [lines(part("p1"), part("p2")), lines(part("p3"), part("p4", stock=500))]
    result = graph.load(given, rejects=rejects, skip_bad=True)
    assert counts(result) == (3, 0, 1)
    assert [(entry["file"], entry["line"]) for entry in rejected(rejects)] == [("input 2", 2)]


def test_a_file_given_twice(graph: Omnigraph, rejects: Path, tmp_path: Path) -> None:
    path = tmp_path / "parts.jsonl"
    path.write_bytes(lines(part("p1"), note()))
    result = graph.load([path, path], rejects=rejects, skip_bad=True)
    assert counts(result) == (3, 0, 1)
    (entry,) = rejected(rejects)
    assert (entry["file"], entry["line"]) == (f"{path} (input 2)", 1)
    assert f"was given before, at {path}:1" in entry["problems"][0]


def test_rows_of_a_table(graph: Omnigraph, rejects: Path) -> None:
    table = pa.table({"sku": ["p1", "p2"], "name": ["x", "y"], "stock": [1, 500]})
    result = graph.load(table, type="Part", rejects=rejects, skip_bad=True)
    assert counts(result) == (1, 0, 1)
    (entry,) = rejected(rejects)
    assert entry["line"] == 2
    assert json.loads(entry["record"]) == {"sku": "p2", "name": "y", "stock": 500}


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (gzip.compress(lines(*(note(str(number)) for number in range(999))))[:-30], {}),
        (b"not parquet", {"format": "parquet", "type": "Part"}),
        (b"not arrow", {"format": "arrow", "type": "Part"}),
    ],
)
def test_a_source_that_cannot_be_read(
    graph: Omnigraph, rejects: Path, data: bytes, options: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match="cannot be") as caught:
        graph.load(data, rejects=rejects, **options)
    assert caught.value.violations[0].line is None
    assert rejected(rejects) == []


def test_bad_records_beside_a_source_that_breaks_off(graph: Omnigraph, rejects: Path) -> None:
    cut = gzip.compress(lines(*(note(str(number)) for number in range(999))))[:-30]
    with pytest.raises(DataError, match="cannot be decompressed"):
        graph.load([cut, lines(part("p", stock=500))], rejects=rejects)
    assert [(entry["file"], entry["line"]) for entry in rejected(rejects)] == [("input 2", 1)]


def test_bytes_that_are_no_text(graph: Omnigraph, rejects: Path) -> None:
    result = graph.load(b'{"type": "\xff"}\n' + lines(note()), rejects=rejects, skip_bad=True)
    assert counts(result) == (1, 0, 1)
    assert rejected(rejects)[0]["record"] == '{"type": "\ufffd"}'


def test_a_file_that_cannot_be_written(graph: Omnigraph, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    before = state(graph)
    with pytest.raises(ConfigError, match="cannot write the reject file"):
        graph.load(lines(part("p")), rejects=tmp_path / "taken" / "rejects.jsonl", skip_bad=True)
    assert state(graph) == before


def test_reading_again_gives_the_same(graph: Omnigraph, tmp_path: Path) -> None:
    """What is left out makes the input be read again: the rest is as if it had stood alone."""
    good = [part("p1", tags=["x"]), note("m", text="ü"), needs("m", "p1", "w2")]
    bad = [part("p2", serial="S1"), edge("Holds", bin_id("west"), "p2", "e1"), part("p1")]
    mixed = [good[0], bad[0], good[1], bad[1], good[2], bad[2]]
    graph.load(lines(*mixed), skip_bad=True)
    other = small_graph(tmp_path / "other")
    other.load(lines(*good))
    assert exported(graph) == exported(other)
