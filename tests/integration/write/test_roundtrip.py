"""Out and in again: a graph that is exported and loaded elsewhere is the same graph."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, DataError
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.loading import (
    article,
    bin_,
    exported,
    holds,
    ids,
    lines,
    needs,
    new_graph,
    note,
    page,
    part,
    rows,
    small_graph,
)

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {
    "String": ("ü\x00😀", ""),
    "Bool": (True, False),
    "I32": (2**31 - 1, -(2**31)),
    "I64": (2**63 - 1, -(2**63)),
    "U32": (2**32 - 1, 0),
    "U64": (2**64 - 1, 0),
    "F32": (3.4028235e38, 1e-45),
    "F64": (1.7976931348623157e308, 5e-324),
    "Date": ("9999-12-31", "0001-01-01"),
    "DateTime": ("9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"),
    "Vector(2)": ([3.4028235e38, -0.0], [0.0, 1.0]),
    "Blob": ("base64:AP8=", "https://example.org/a"),
    "enum(one, two)": ("one", "two"),
}
LISTS = {
    f"[{name}]": ([*values], []) for name, values in TYPES.items() if name.isalnum()
    if name != "Blob"
}  # fmt: skip
EVERY = pytest.mark.parametrize(
    ("type_name", "values"), [*TYPES.items(), *LISTS.items()], ids=lambda item: str(item)[:14]
)


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    """Rows of every type, after changes of every kind."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = small_graph(tmp_path)
    graph.load(
        lines(
            part("d", tags=[], drawing="base64:AQI=", shape=[1, 2, 3], weight=-0.0),
            part("ü😀\n", tags=["", "x"], drawing="s3://bucket/d", colour=None),
            bin_('q"\\', 7), note(text=""), note("n2"), needs("n2", "d"),
            article("x", body="alpha"), article("y", body="beta", topic=[1, 2, 3, 4]),
            page("p", body="gamma"), holds("south", "d", "h2", grade="poor", count=3),
        )
    )  # fmt: skip
    graph.mutate('query q() { update Part set { stock: 9, code: "AB" } where sku = "b" }')
    graph.mutate('query q() { delete Part where sku = "c" }')
    return graph


@pytest.mark.parametrize("mode", ["overwrite", "append", "merge"])
def test_jsonl(graph: Omnigraph, tmp_path: Path, mode: str) -> None:
    other = new_graph(tmp_path / "other")
    result = other.load(exported(graph), mode=mode)
    assert (result.nodes_loaded, result.edges_loaded) == (13, 4)
    assert result.vectors_made == 0, "they came with the rows"
    assert exported(other) == exported(graph)


def test_jsonl_into_the_same_graph(graph: Omnigraph) -> None:
    before = exported(graph)
    graph.load(before)
    assert exported(graph) == before


def test_parquet(graph: Omnigraph, tmp_path: Path) -> None:
    files = graph.export_parquet(tmp_path / "tables")
    assert len(files) == 7
    other = new_graph(tmp_path / "other")
    other.load([file.path for file in files], mode="overwrite")
    assert exported(other) == exported(graph)


def test_rows_that_are_loaded_back_are_the_rows(graph: Omnigraph) -> None:
    found = rows(graph, "Part")
    assert found["ü😀\n"] == {
        "sku": "ü😀\n", "name": "part ü😀\n", "tags": ["", "x"], "drawing": "s3://bucket/d",
    }  # fmt: skip
    assert math.copysign(1, found["d"]["weight"]) == -1
    assert found["d"]["tags"] == []
    assert (found["b"]["stock"], found["b"]["code"]) == (9, "AB")


def test_some_types(graph: Omnigraph, tmp_path: Path) -> None:
    parts = exported(graph, types=["Part"])
    assert {json.loads(line)["type"] for line in parts.splitlines()} == {"Part"}
    assert exported(graph, table_keys=["node:Part"]) == parts
    other = new_graph(tmp_path / "other")
    other.load(parts)
    assert exported(other) == parts
    with pytest.raises(ConfigError, match="Prat"):
        exported(graph, types=["Prat"])


def test_a_commit_of_the_past(graph: Omnigraph) -> None:
    before, commit = exported(graph), graph.head_commit_id_for_branch()
    graph.load(lines(part("late")))
    target = ReadTarget(snapshot_id=commit)
    assert b"".join(graph.export_jsonl(target)) == before
    assert exported(graph) != before


def test_an_export_is_of_one_moment(graph: Omnigraph) -> None:
    before = exported(graph)
    pieces = graph.export_jsonl()
    first = next(pieces)
    graph.load(lines(part("late"), note("late")))
    assert first + b"".join(pieces) == before


@EVERY
def test_every_type(tmp_path: Path, type_name: str, values: tuple[Any, Any]) -> None:
    """Also when the rows are there already and have to be found first."""
    schema = f"node Thing {{\n  value: {type_name}?\n}}\nedge Next: Thing -> Thing"
    graph = Omnigraph.init(str(tmp_path / "graph"), schema)
    given = lines(
        *({"type": "Thing", "data": {"id": f"t{n}", "value": v}} for n, v in enumerate(values)),
        {"type": "Thing", "data": {"id": "null"}},
        {"type": "Thing", "data": {"id": "it's"}},
        {"edge": "Next", "from": "t0", "to": "it's", "data": {"id": "e"}},
    )
    graph.load(given)
    once = exported(graph)
    assert [rows(graph, "Thing")[id].get("value") for id in ("t0", "t1", "null")] == [
        *values, None,
    ]  # fmt: skip
    graph.load(given)
    assert exported(graph) == once
    with pytest.raises(DataError, match="already exists"):
        graph.load(given, mode="append")
    graph.load(lines({"edge": "Next", "from": "it's", "to": "t1", "data": {"id": "f"}}))
    assert ids(graph, "Next") == ["e", "f"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", ["weight", "shape"])
def test_what_json_could_not_tell_is_not_taken(
    graph: Omnigraph, number: float, column: str
) -> None:
    before = exported(graph)
    values = {
        "weight": pa.array([number]),
        "shape": pa.array([[1.0, number, 2.0]], pa.list_(pa.float32(), 3)),
    }
    table = pa.table({"sku": ["z"], "name": ["z"], column: values[column]})
    with pytest.raises(DataError, match="expected a finite number") as caught:
        graph.load(table, type="Part")
    (found,) = caught.value.violations
    assert (found.rule, found.property, found.line, found.unit) == ("value", column, 1, "row")
    assert exported(graph) == before


@pytest.mark.parametrize(
    ("unique", "value"),
    [("I64", 7), ("F64", 0.5), ("Date", "2026-01-31"), ("Bool", True), ("U32", 7), ("String", "'")],
)
@pytest.mark.parametrize("beside", ["[U64]", "[DateTime]"])
def test_unique_values_beside_every_type(
    tmp_path: Path, unique: str, value: object, beside: str
) -> None:
    """Values are found whatever else their table holds."""
    schema = f"node Thing {{\n  value: {unique}? @unique\n  other: {beside}?\n}}"
    graph = Omnigraph.init(str(tmp_path / "graph"), schema)
    graph.load(lines({"type": "Thing", "data": {"id": "a", "value": value}}))
    with pytest.raises(DataError, match=r"@unique violation on Thing\.value"):
        graph.load(lines({"type": "Thing", "data": {"id": "b", "value": value}}))
    graph.load(lines({"type": "Thing", "data": {"id": "a", "value": value, "other": []}}))
    assert ids(graph, "Thing") == ["a"]
