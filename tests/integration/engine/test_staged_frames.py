"""Frames are staged one by one and published with one commit, on every store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.staged_frames import (
    pin_commit,
    publish_frames,
    read_frame,
    read_staged,
    stage_frame,
)
from omnigraph_core.errors import ConfigError
from omnigraph_core.storage.places import shared_store
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from omnigraph_core.engine.published_frames import PublishedFrames, StagedFrame

_SCHEMA = """
node Part { sku: String @key  madeAt: DateTime?  seenAt: [DateTime]?  drawing: Blob? }
edge Fits: Part -> Part
"""
PARTS = pa.table({"sku": ["p1", "p2"]})
FITS = pa.table({"src": ["p1"], "dst": ["p2"]})


def staged(graph: Omnigraph, name: str, rows: pa.Table, branch: str = "main") -> StagedFrame:
    return stage_frame(graph, "run", name, rows, label=f"asset of {name}", branch=branch)


def parts_of(graph: Omnigraph) -> list[Any]:
    head = graph.snapshot().commit.graph_commit_id
    return read_frame(graph, "Part", commit=head).to_pylist()


def skus(graph: Omnigraph) -> list[str]:
    return [row["sku"] for row in parts_of(graph)]


def names(*frames: StagedFrame) -> dict[str, str]:
    return {frame.name: frame.label for frame in frames}


def test_frames_are_published_together_and_once(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    before = graph.snapshot().manifest_version
    parts, fits = staged(graph, "Part", PARTS), staged(graph, "edge:Fits", FITS)
    assert read_staged(graph, "run", parts.name) == PARTS
    assert graph.snapshot().manifest_version == before
    first = publish_frames(graph, "run", names(parts, fits), reader="reader")
    assert first.rows == {"node:Part": 2, "edge:Fits": 1}
    assert graph.snapshot().manifest_version == before + 1
    assert read_staged(graph, "run", parts.name) is None
    assert pin_commit(graph, "run", "reader") == first.commit_id
    # The same frames, and the same rows staged again, have been published.
    for frames in (names(parts, fits), names(staged(graph, "edge:Fits", FITS))):
        again = publish_frames(graph, "run", frames)
        assert (again.is_repeat, again.commit_id) == (True, first.commit_id)
    more = staged(graph, "Part", pa.table({"sku": ["p3"]}))
    second = publish_frames(graph, "run", names(parts, fits, more))
    assert second.rows == {"node:Part": 1}
    assert graph.snapshot().manifest_version == before + 2


def test_frames_that_cannot_be_published_are_all_named(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    graph.branch_create("draft")
    drafted = staged(graph, "Part", PARTS, "draft")
    frames = {**names(drafted), "frame-gone": "another", "frame-lost": "a third"}
    with pytest.raises(ConfigError) as refused:
        publish_frames(graph, "run", frames)
    assert refused.value.message.splitlines() == [
        "another is not staged any more",
        "a third is not staged any more",
        "asset of Part is staged for the branch `draft`, not for `main`",
    ]
    with pytest.raises(ConfigError, match="no staged frame"):
        publish_frames(graph, "run", {})


def test_a_reader_keeps_its_commit(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    graph.load(PARTS, type="Part")
    pinned = pin_commit(graph, "run", "reader")
    graph.load(pa.table({"sku": ["p3"]}), type="Part")
    assert pin_commit(graph, "run", "reader") == pinned
    assert pin_commit(graph, "run", "another reader") != pinned
    rows = read_frame(graph, "Part", commit=pinned)
    assert rows["id"].to_pylist() == ["p1", "p2"]
    assert rows.schema.field("madeAt").type == pa.timestamp("ms", "UTC")
    assert "drawing" not in rows.column_names
    nothing = read_frame(graph, "edge:Fits", commit=pinned)
    assert (nothing.num_rows, nothing.column_names) == (0, ["id", "src", "dst"])


def test_the_same_indices_of_other_categories_are_other_rows(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    for sku in ("p1", "p2"):
        coded = pa.table({"sku": pa.array([sku]).dictionary_encode()})
        assert publish_frames(graph, "run", names(staged(graph, "Part", coded))).is_repeat is False
    assert skus(graph) == ["p1", "p2"]


def test_moments_keep_their_time_of_day(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    at = datetime(2001, 2, 3, 4, 5, tzinfo=UTC)
    graph.load(pa.table({"sku": ["p1"], "madeAt": [at]}), type="Part")
    query = "query all() { match { $p: Part } return { $p.sku as sku, $p.madeAt as madeAt } }"
    rows = graph.query("main", query).to_arrow()
    moments = rows["madeAt"].combine_chunks()
    assert pa.types.is_date64(moments.type)
    seen = {
        "a list": pa.ListArray.from_arrays([0, 1], moments),
        "a view": pa.ListViewArray.from_arrays([0], [1], moments),
        "a vector": pa.FixedSizeListArray.from_arrays(moments, 1),
    }
    for sku, column in seen.items():
        frame = pa.table({"sku": [sku], "madeAt": moments, "seenAt": column})
        publish_frames(graph, "run", names(staged(graph, "Part", frame)))
    coded = pa.table({"sku": ["a code"], "madeAt": moments.dictionary_encode()})
    publish_frames(graph, "run", names(staged(graph, "Part", rows), staged(graph, "Part", coded)))
    found = parts_of(graph)
    assert [row["madeAt"] for row in found] == [at] * 5
    assert [row["seenAt"] for row in found if row["sku"] in seen] == [[at]] * 3


def test_overwriting_takes_all_frames_of_a_table_or_none(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)

    def stage(label: str, sku: str) -> StagedFrame:
        rows = pa.table({"sku": [sku]})
        return stage_frame(graph, "run", "Part", rows, label=label, mode="overwrite")

    def publish(*frames: StagedFrame) -> PublishedFrames:
        return publish_frames(graph, "run", names(*frames), mode="overwrite")

    first = publish(stage("A", "a1"), second := stage("B", "b1"))
    assert publish(stage("A", "a1"), second).commit_id == first.commit_id
    changed = publish(stage("A", "a2"), stage("B", "b1"))
    assert (changed.rows, skus(graph)) == ({"node:Part": 2}, ["a2", "b1"])
    newest = stage("B", "b1")
    assert publish(newest).is_repeat
    with pytest.raises(ConfigError, match="B is published already and not staged again"):
        publish(stage("A", "a3"), second)
    assert skus(graph) == ["a2", "b1"]


def test_rows_that_return_are_published_again(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    for count in (1, 2, 1, 2):
        moment = datetime(2001, 2, count, tzinfo=UTC)
        frame = staged(graph, "Part", pa.table({"sku": ["p1"], "madeAt": [moment]}))
        assert publish_frames(graph, "run", names(frame)).is_repeat is False
        assert [row["madeAt"] for row in parts_of(graph)] == [moment]


def test_a_repeat_has_the_commit_of_its_rows(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    parts = staged(graph, "Part", PARTS)
    first = publish_frames(graph, "run", names(parts))
    fits = staged(graph, "edge:Fits", FITS)
    second = publish_frames(graph, "run", names(fits))
    for frames, publish in (((parts,), first), ((fits,), second), ((parts, fits), second)):
        again = publish_frames(graph, "run", names(*frames))
        assert (again.is_repeat, again.commit_id) == (True, publish.commit_id)


def test_a_reader_reads_what_it_has_published_itself(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    pinned = pin_commit(graph, "run", "first")
    published = publish_frames(graph, "run", names(staged(graph, "Part", PARTS)), reader="first")
    graph.load(pa.table({"sku": ["p3"]}), type="Part")
    head = graph.snapshot().commit.graph_commit_id
    assert pin_commit(graph, "run", "first") == published.commit_id != pinned
    assert pin_commit(graph, "run", "second") == head


def test_a_frame_whose_rows_are_being_removed_is_published(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    frame = staged(graph, "Part", PARTS)
    Scratch(shared_store(graph_root), "run").remove(frame.parts)
    assert read_staged(graph, "run", frame.name) is None
