"""Frames are staged one by one and published with one commit, on every store."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.staged_frames import (
    StagedFrame,
    pin_commit,
    publish_frames,
    read_frame,
    read_staged,
    stage_frame,
)
from omnigraph_core.errors import ConfigError

_SCHEMA = """
node Part { sku: String @key  madeAt: DateTime?  drawing: Blob? }
edge Fits: Part -> Part
"""
PARTS = pa.table({"sku": ["p1", "p2"]})
FITS = pa.table({"src": ["p1"], "dst": ["p2"]})


def staged(graph: Omnigraph, name: str, rows: pa.Table, branch: str = "main") -> StagedFrame:
    return stage_frame(graph, "run", name, rows, label=f"asset of {name}", branch=branch)


def names(*frames: StagedFrame) -> dict[str, str]:
    return {frame.name: frame.label for frame in frames}


def test_frames_are_published_together_and_once(graph_root: str) -> None:
    graph = Omnigraph.init(graph_root, _SCHEMA)
    before = graph.snapshot().manifest_version
    parts, fits = staged(graph, "Part", PARTS), staged(graph, "edge:Fits", FITS)
    assert read_staged(graph, "run", parts.name) == PARTS
    assert graph.snapshot().manifest_version == before
    first = publish_frames(graph, "run", names(parts, fits))
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
