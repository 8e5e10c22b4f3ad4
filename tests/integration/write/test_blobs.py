"""Blobs through the engine: in as text, back as bytes or as an address, kept by every write."""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, ConstraintViolation, NotFoundError
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.loading import exported, lines, new_graph, part, rows

if TYPE_CHECKING:
    from pathlib import Path


def text_of(data: bytes) -> str:
    return f"base64:{base64.b64encode(data).decode()}"


SMALL = bytes(range(256))
ADDRESS = "https://example.org/drawings/7?size=large#top"


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    graph = new_graph(tmp_path)
    graph.load(
        lines(
            part("small", drawing=text_of(SMALL)),
            part("empty", drawing="base64:"),
            part("none"),
            part("null", drawing=None),
            part("away", drawing=ADDRESS),
        )
    )
    return graph


def drawing(graph: Omnigraph, sku: str, offset: int = 0, length: int | None = None) -> bytes | None:
    return graph.read_blob("Part", sku, "drawing", offset=offset, length=length)


def test_whole(graph: Omnigraph) -> None:
    assert drawing(graph, "small") == SMALL
    assert drawing(graph, "empty") == b""
    assert drawing(graph, "none") is None
    assert drawing(graph, "null") is None


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 10, SMALL[:10]),
        (100, 50, SMALL[100:150]),
        (250, 100, SMALL[250:]),
        (250, None, SMALL[250:]),
        (256, 1, b""),
        (1000, None, b""),
        (5, 0, b""),
    ],
)
def test_ranges(graph: Omnigraph, offset: int, length: int | None, expected: bytes) -> None:
    assert drawing(graph, "small", offset, length) == expected


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (0, -1)])
def test_ranges_that_cannot_be(graph: Omnigraph, offset: int, length: int | None) -> None:
    with pytest.raises(ConfigError, match="no range"):
        drawing(graph, "small", offset, length)


@pytest.mark.parametrize(("offset", "length"), [("1", None), (1.5, None), (None, 1), (0, "2")])
@pytest.mark.parametrize("sku", ["small", "none"])
def test_ranges_that_are_not_of_whole_numbers(
    graph: Omnigraph, sku: str, offset: Any, length: Any
) -> None:
    with pytest.raises(ConfigError, match="is a whole number, not"):
        drawing(graph, sku, offset, length)


def test_ranges_of_nothing(graph: Omnigraph) -> None:
    assert drawing(graph, "empty", 0, 5) == b""
    assert drawing(graph, "none", 0, 5) is None


def test_what_is_kept_elsewhere_is_never_fetched(graph: Omnigraph, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for graphs")
    graph.load(lines(part("file", drawing=secret.as_uri())))
    assert graph.open_blob("Part", "file", "drawing").uri == secret.as_uri()
    with pytest.raises(ConfigError, match="is kept at") as caught:
        drawing(graph, "file")
    assert "not for graphs" not in str(caught.value)
    blob = graph.open_blob("Part", "away", "drawing")
    assert (blob.uri, blob.reader) == (ADDRESS, None)
    with pytest.raises(ConfigError, match="is kept at"):
        drawing(graph, "away", 0, 1)


def test_read_in_pieces(graph: Omnigraph) -> None:
    reader = graph.open_blob("Part", "small", "drawing").reader
    assert reader is not None
    with reader:
        assert reader.size == 256
        assert reader.read(100) + reader.read() == SMALL


def test_what_is_not_there(graph: Omnigraph) -> None:
    with pytest.raises(NotFoundError, match="no Part has the id 'nobody'"):
        drawing(graph, "nobody")
    with pytest.raises(ConfigError, match="no Blob property `draw`") as caught:
        graph.read_blob("Part", "small", "draw")
    assert "drawing" in str(caught.value)
    with pytest.raises(ConfigError, match="no Blob property `name`"):
        graph.read_blob("Part", "small", "name")
    with pytest.raises(ConfigError, match="unknown type `Prat`"):
        graph.read_blob("Prat", "small", "drawing")
    with pytest.raises(ConfigError, match="unknown type"):
        graph.read_blob("edge:Part", "small", "drawing")


def test_a_table_key_names_the_type_too(graph: Omnigraph) -> None:
    assert graph.read_blob("node:Part", "small", "drawing", length=2) == SMALL[:2]


def test_a_large_one(graph: Omnigraph, tmp_path: Path) -> None:
    data = random.Random(7).randbytes(5 << 20)
    graph.load(lines(part("large", drawing=text_of(data)), part("small", drawing=text_of(b"x"))))
    assert drawing(graph, "large") == data
    assert drawing(graph, "large", 4 << 20, 1000) == data[4 << 20 :][:1000]
    other = new_graph(tmp_path / "other")
    other.load(exported(graph))
    assert drawing(other, "large") == data


def test_a_merge_replaces_them(graph: Omnigraph) -> None:
    graph.load(
        lines(part("small", drawing=ADDRESS), part("away", drawing=text_of(b"here")), part("empty"))
    )
    assert graph.open_blob("Part", "small", "drawing").uri == ADDRESS
    assert drawing(graph, "away") == b"here"
    assert drawing(graph, "empty") is None


def test_other_rows_keep_theirs(graph: Omnigraph) -> None:
    graph.load(lines(part("none", stock=1), part("new", drawing=text_of(b"new"))))
    assert drawing(graph, "small") == SMALL
    assert drawing(graph, "new") == b"new"
    assert drawing(graph, "empty") == b""
    assert graph.open_blob("Part", "away", "drawing").uri == ADDRESS


def test_an_update_of_another_property_keeps_them(graph: Omnigraph) -> None:
    before = {sku: values.get("drawing") for sku, values in rows(graph, "Part").items()}
    result = graph.mutate('query q() { update Part set { stock: 3 } where colour = "grey" }')
    assert result.affected_nodes == 5
    after = rows(graph, "Part")
    assert {sku: values.get("drawing") for sku, values in after.items()} == before
    assert all(values["stock"] == 3 for values in after.values())
    assert drawing(graph, "small", 3, 2) == SMALL[3:5]


def test_an_update_replaces_them(graph: Omnigraph) -> None:
    query = (
        "query q($sku: String, $d: String?) { update Part set { drawing: $d } where sku = $sku }"
    )
    graph.mutate(query, {"sku": "small", "d": ADDRESS})
    graph.mutate(query, {"sku": "away", "d": text_of(b"here")})
    graph.mutate(query, {"sku": "empty", "d": None})
    assert graph.open_blob("Part", "small", "drawing").uri == ADDRESS
    assert drawing(graph, "away") == b"here"
    assert drawing(graph, "empty") is None


def test_an_overwrite_replaces_all(graph: Omnigraph) -> None:
    graph.load(lines(part("none", drawing=text_of(b"only"))), mode="overwrite")
    assert drawing(graph, "none") == b"only"
    with pytest.raises(NotFoundError):
        drawing(graph, "small")


def test_old_snapshots_keep_theirs(graph: Omnigraph) -> None:
    old = graph.head_commit_id_for_branch()
    graph.branch_create("draft")
    graph.load(lines(part("small", drawing=text_of(b"new"))))
    at = ReadTarget(snapshot_id=old)
    assert graph.read_blob("Part", "small", "drawing", target=at) == SMALL
    assert graph.read_blob("Part", "small", "drawing", target="draft") == SMALL
    assert drawing(graph, "small") == b"new"


def test_compaction_keeps_them(graph: Omnigraph) -> None:
    for number in range(5):
        graph.load(lines(part(f"n{number}", drawing=text_of(bytes([number])))))
    before = exported(graph)
    graph.optimize()
    assert exported(graph) == before
    assert drawing(graph, "small") == SMALL
    assert drawing(graph, "n3") == b"\x03"


def test_the_export_gives_the_same_text(graph: Omnigraph) -> None:
    assert {sku: values.get("drawing") for sku, values in rows(graph, "Part").items()} == {
        "small": text_of(SMALL),
        "empty": "base64:",
        "none": None,
        "null": None,
        "away": ADDRESS,
    }


def test_a_required_one_needs_bytes_or_an_address(tmp_path: Path) -> None:
    schema = "node Photo {\n  name: String @key\n  image: Blob\n}"
    graph = Omnigraph.init(str(tmp_path / "photos"), schema)
    given = [
        {"type": "Photo", "data": {"name": "bytes", "image": "base64:AQI="}},
        {"type": "Photo", "data": {"name": "empty", "image": "base64:"}},
        {"type": "Photo", "data": {"name": "away", "image": ADDRESS}},
    ]
    with pytest.raises(ConstraintViolation, match="missing required property `image`") as caught:
        graph.load(lines(*given, {"type": "Photo", "data": {"name": "none"}}))
    assert [found.line for found in caught.value.violations] == [4]
    assert graph.load(lines(*given)).nodes_loaded == 3


def test_blobs_of_edges(tmp_path: Path) -> None:
    schema = "node Place {\n  name: String @key\n}\nedge Road: Place -> Place {\n  map: Blob?\n}"
    graph = Omnigraph.init(str(tmp_path / "roads"), schema)
    places = [{"type": "Place", "data": {"name": name}} for name in "ab"]
    road = {"edge": "Road", "from": "a", "to": "b", "data": {"id": "r", "map": "base64:AQI="}}
    graph.load(lines(*places, road))
    assert graph.read_blob("Road", "r", "map") == b"\x01\x02"
    assert graph.read_blob("edge:road", "r", "map") == b"\x01\x02"
