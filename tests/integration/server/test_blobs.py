"""Blobs over HTTP: whole, in ranges, or elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.served import DRAWING, document, lines, new_stock, part, stock_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blobs")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


def fetch(client: Client, id: str = "p1", method: str = "GET", **more: Any) -> Any:
    headers = more.pop("headers", {})
    parameters = {"type": "Part", "id": id, "property": "drawing", **more}
    return client.request(
        method, "/blob", params=parameters, headers=headers, follow_redirects=False
    )


def test_a_blob_as_a_whole(client: Client) -> None:
    response = fetch(client)
    assert (response.status_code, response.content) == (200, DRAWING)
    assert response.headers["content-length"] == str(len(DRAWING))
    assert response.headers["accept-ranges"] == "bytes"
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_head_tells_the_length(client: Client) -> None:
    whole, head = fetch(client), fetch(client, method="HEAD")
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "etag", "accept-ranges", "content-type"):
        assert head.headers[name] == whole.headers[name]
    part_of_it = fetch(client, method="HEAD", headers={"Range": "bytes=0-9"})
    assert (part_of_it.status_code, part_of_it.headers["content-length"]) == (206, "10")
    assert fetch(client, "nothing", method="HEAD").status_code == 404


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-199", 100, 200),
        ("bytes=5000-", 5000, len(DRAWING)),
        ("bytes=-7", len(DRAWING) - 7, len(DRAWING)),
        ("bytes=-999999", 0, len(DRAWING)),
        ("bytes=5119-999999", 5119, len(DRAWING)),
    ],
)
def test_a_range(client: Client, asked: str, start: int, end: int) -> None:
    response = fetch(client, headers={"Range": asked})
    assert (response.status_code, response.content) == (206, DRAWING[start:end])
    assert response.headers["content-range"] == f"bytes {start}-{end - 1}/{len(DRAWING)}"


@pytest.mark.parametrize("asked", ["bytes=5120-", "bytes=-0", "bytes=99999-100000"])
def test_a_range_that_is_not_there(client: Client, asked: str) -> None:
    response = fetch(client, headers={"Range": asked})
    assert document(response, 416)["code"] == "bad_request"
    assert response.headers["content-range"] == f"bytes */{len(DRAWING)}"


@pytest.mark.parametrize("asked", ["bytes=", "bytes=-", "bytes=9-3", "lines=1-2", "bytes=0-1,5-6"])
def test_what_is_no_single_range_is_the_whole(client: Client, asked: str) -> None:
    response = fetch(client, headers={"Range": asked})
    assert (response.status_code, response.content) == (200, DRAWING)


def test_a_blob_that_is_known_is_not_sent(client: Client, stock: Omnigraph) -> None:
    tag = fetch(client).headers["etag"]
    known = fetch(client, headers={"If-None-Match": f'"other", {tag}'})
    assert (known.status_code, known.content) == (304, b"")
    stale = fetch(client, headers={"Range": "bytes=0-1", "If-Range": '"other"'})
    assert stale.status_code == 200
    fresh = fetch(client, headers={"Range": "bytes=0-1", "If-Range": tag})
    assert fresh.status_code == 206
    stock.load(lines([{"type": "Bin", "data": {"code": "other table"}}]))
    assert fetch(client).headers["etag"] == tag
    stock.load(lines([part("p9")]))
    assert fetch(client).headers["etag"] != tag


def test_a_blob_of_another_state(client: Client, stock: Omnigraph) -> None:
    first = stock.list_commits()[-1].graph_commit_id
    assert document(fetch(client, snapshot=first), 404)["code"] == "not_found"
    head = stock.head_commit_id_for_branch()
    assert fetch(client, snapshot=head).content == DRAWING
    both = fetch(client, snapshot=head, branch="main")
    assert document(both, 400)["code"] == "bad_request"


def test_a_blob_that_is_kept_elsewhere(client: Client) -> None:
    response = fetch(client, "p3")
    assert response.status_code == 302
    assert response.headers["location"] == "https://example.org/drawings/p3?a=b"
    refused = document(fetch(client, "p4"), 400)
    assert refused["reason"] == "blob.elsewhere"
    assert refused["details"] == {"uri": "file:///drawings/p4"}
    assert document(fetch(client, "p2"), 404)["reason"] == "not_found.blob"
    assert document(fetch(client, "nothing"), 404)["reason"] == "not_found"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"id": "p2"}, 404),
        ({"id": "nothing"}, 404),
        ({"type": "Nut"}, 400),
        ({"property": "name"}, 400),
        ({"branch": "nowhere"}, 404),
    ],
)
def test_no_blob(client: Client, more: dict[str, str], status: int) -> None:
    assert document(fetch(client, **more), status)["error"]


def test_what_is_needed_is_told(client: Client) -> None:
    found = document(client.get("/blob", params={"type": "Part"}), 422)
    assert "id" in found["error"]
    assert "property" in found["error"]
