"""Out of the graph: exports that load back as the same graph, and blobs."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from omnigraph_core.errors import BranchNotFound, ConfigError, NotFoundError, TagNotFound
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.write.export_parquet import ExportedFile
from tests.behaviour.stock import DRAWING, SCHEMA, part, put
from tests.support.ways import NOT_ON_S3

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.ways import Place, Way, Ways


def lines_of(graph: Omnigraph) -> list[str]:
    return sorted(b"".join(graph.export_jsonl()).decode().splitlines())


def test_an_export_loads_back(shared: Place, way: Way, ways: Ways) -> None:
    data = b"".join(shared.graph.export_jsonl())
    records = [json.loads(line) for line in data.splitlines()]
    assert len(records) == 7
    bolt = next(item["data"] for item in records if item["data"].get("sku") == "bolt")
    assert (bolt["stock"], bolt["serial"]) == (2**53 + 1, 2**64 - 1)
    assert len(bolt["meaning"]) == 4
    copy = ways.new(way, SCHEMA)
    with copy.graph, copy.at_hand:
        done = copy.graph.load(data, mode="append")
        assert (done.nodes_loaded, done.edges_loaded, done.vectors_made) == (5, 2, 0)
        assert lines_of(copy.graph) == sorted(data.decode().splitlines())
        assert copy.graph.read_blob("Part", "bolt", "drawing") == DRAWING


@NOT_ON_S3
def test_parts_of_an_export(place: Place) -> None:
    graph = place.graph
    graph.tag_create("v1")
    put(graph, part("late"))
    whole = place.both(lambda graph: b"".join(graph.export_jsonl()))
    old = place.both(lambda graph: b"".join(graph.export_jsonl(ReadTarget(tag="v1"))))
    assert len(whole.splitlines()) == len(old.splitlines()) + 1
    bins = place.both(lambda graph: b"".join(graph.export_jsonl(types=["Bin"])))
    assert len(bins.splitlines()) == 2
    some = place.both(
        lambda graph: b"".join(graph.export_jsonl(types=["Bin"], table_keys=["edge:Holds"]))
    )
    assert len(some.splitlines()) == 4
    for call, kind in (
        (lambda graph: graph.export_jsonl("none"), BranchNotFound),
        (lambda graph: graph.export_jsonl(ReadTarget(tag="none")), TagNotFound),
        (lambda graph: graph.export_jsonl(types=["Prt"], table_keys=["x"]), ConfigError),
    ):
        assert isinstance(place.raised(call), kind)


def test_an_export_can_be_left(shared: Place) -> None:
    lines = shared.graph.export_jsonl()
    assert next(lines).endswith(b"\n")
    lines.close()  # type: ignore[attr-defined]
    assert len(lines_of(shared.graph)) == 7


def test_parquet_files(shared: Place, tmp_path: Path) -> None:
    found = shared.graph.export_parquet(tmp_path / "here")
    expected = shared.at_hand.export_parquet(tmp_path / "at hand")
    assert [(file.table_key, file.row_count) for file in found] == [
        (file.table_key, file.row_count) for file in expected
    ]
    for file, other in zip(found, expected, strict=True):
        assert isinstance(file, ExportedFile)
        assert file.path.relative_to(tmp_path / "here") == other.path.relative_to(
            tmp_path / "at hand"
        )
        assert file.byte_count == file.path.stat().st_size
        ours, theirs = pq.read_table(file.path), pq.read_table(other.path)
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        assert ours.equals(theirs)
    (only,) = shared.graph.export_parquet(
        tmp_path / "some", ReadTarget(branch="main"), types=["Bin"]
    )
    assert only.row_count == 2
    shared.raised(lambda graph: graph.export_parquet(tmp_path / "x", types=["Prt"]))
    shared.raised(lambda graph: graph.export_parquet(tmp_path / "x", "none"))
    assert not (tmp_path / "x").exists()


@NOT_ON_S3
def test_parquet_files_load_back(shared: Place, way: Way, ways: Ways, tmp_path: Path) -> None:
    files = shared.graph.export_parquet(tmp_path)
    copy = ways.new(way, SCHEMA)
    with copy.graph, copy.at_hand:
        done = copy.graph.load([file.path for file in files], mode="append", embed="off")
        assert (done.nodes_loaded, done.edges_loaded) == (5, 2)
        assert lines_of(copy.graph) == lines_of(shared.graph)


def test_blobs(shared: Place) -> None:
    assert shared.both(lambda graph: graph.read_blob("Part", "bolt", "drawing")) == DRAWING
    for offset, length in ((0, 0), (1, 3), (2047, 1), (2047, 9), (2048, 5), (9999, 1), (5, None)):
        found = shared.both(
            lambda graph, at=offset, size=length: graph.read_blob(  # type: ignore[misc]
                "node:Part", "bolt", "drawing", offset=at, length=size
            )
        )
        assert found == DRAWING[offset : None if length is None else offset + length]
    assert shared.both(lambda graph: graph.read_blob("Part", "bare", "drawing")) is None
    elsewhere = shared.both(lambda graph: graph.open_blob("Part", "nut", "drawing"))
    assert (elsewhere.uri, elsewhere.reader) == ("https://example.org/nut.png", None)
    nothing = shared.both(lambda graph: graph.open_blob("Part", "bare", "drawing"))
    assert (nothing.uri, nothing.read()) == (None, None)


def test_a_blob_is_read_in_order(shared: Place) -> None:
    reader = shared.graph.open_blob("Part", "bolt", "drawing").reader
    assert reader is not None
    with reader:
        assert (reader.size, reader.tell()) == (2048, 0)
        assert reader.read(2) == DRAWING[:2]
        assert reader.read_range(10, 2) == DRAWING[10:12]
        assert (reader.tell(), reader.seek(-2, io.SEEK_END), reader.read()) == (
            2,
            2046,
            b"\xfe\xff",
        )
        assert (reader.read(), reader.seek(0), reader.read(1)) == (b"", 0, b"\0")
        for wrong in ((-1, io.SEEK_SET), (0, 7)):
            with pytest.raises(ConfigError):
                reader.seek(*wrong)
        with pytest.raises(ConfigError):
            reader.read_range(-1, 2)


def test_a_blob_stays_what_it_was_opened_as(place: Place) -> None:
    graph = place.graph
    reader = graph.open_blob("Part", "bolt", "drawing").reader
    assert reader is not None
    put(graph, part("bolt", drawing="base64:AAE="))
    assert reader.read() == DRAWING
    assert graph.read_blob("Part", "bolt", "drawing") == b"\0\1"
    reader.close()
    old = ReadTarget(snapshot_id=graph.list_commits()[1].graph_commit_id)
    assert graph.read_blob("Part", "bolt", "drawing", target=old, length=3) == DRAWING[:3]


def test_large_blobs_and_empty_ones(place: Place) -> None:
    graph = place.graph
    put(graph, part("empty", drawing="base64:"))
    assert place.both(lambda graph: graph.read_blob("Part", "empty", "drawing")) == b""
    large = bytes(range(251)) * 20_000
    put(graph, part("large", drawing=f"base64:{base64.b64encode(large).decode()}"))
    assert graph.read_blob("Part", "large", "drawing") == large
    assert (
        graph.read_blob("Part", "large", "drawing", offset=4_000_000, length=9)
        == (large[4_000_000:4_000_009])
    )


@NOT_ON_S3
def test_blobs_that_are_not_there(shared: Place) -> None:
    for call, kind in (
        (lambda graph: graph.open_blob("Part", "none", "drawing"), NotFoundError),
        (lambda graph: graph.open_blob("Prt", "bolt", "drawing"), ConfigError),
        (lambda graph: graph.open_blob("Part", "bolt", "name"), ConfigError),
        (lambda graph: graph.open_blob("Part", "bolt", "drawing", target="none"), BranchNotFound),
        (lambda graph: graph.read_blob("Part", "nut", "drawing"), ConfigError),
        (lambda graph: graph.read_blob("Part", "bolt", "drawing", offset=-1), ConfigError),
        (lambda graph: graph.read_blob("Part", "bolt", "drawing", length=-1), ConfigError),
        (lambda graph: graph.read_blob("Part", "bare", "drawing", length=-1), ConfigError),
    ):
        assert isinstance(shared.raised(call), kind)
