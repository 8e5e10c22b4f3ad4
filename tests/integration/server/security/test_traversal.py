"""To get out of the graph: no name that a client gives leads to a file beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tests.integration.server.security.asking import SECRET, TOKENS, asking
from tests.support.raw_http import exchange, request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.server import Client

ASIDE: Final = (
    "../secret.txt", "/etc/passwd", "file:///etc/passwd", "..\\secret.txt",
    "stock/../../secret.txt", "....//secret.txt", "%2e%2e%2fsecret.txt", "secret.gq", "../policy",
    "secret.txt\0.csv", "~/secret.txt", "nodes/../../../secret", "s3://bucket/secret",
)  # fmt: skip
RAW: Final = (
    "/queries/../secret", "/queries/..%2fsecret.gq", "/queries/%2e%2e/%2e%2e/secret.txt",
    "/queries//etc/passwd", "/graphs/../secret.txt", "/graphs/..%2f..%2fetc%2fpasswd/schema",
    "/graphs/stock/../../secret.txt", "/graphs/%2e%2e/schema", "/../secret.txt", "/./secret.txt",
    "//secret.txt", "/..;/secret.txt", "/jobs/..%2f..%2fsecret", "/jobs/%00",
    "/runs/..%5c..%5csecret",
    "/branches/..%2f..%2fsecret.txt", "/branches/%2fetc%2fpasswd", "/tags/..%2f__manifest",
    "/commits/..%2f..%2fpolicy.yaml", "/omnigraph.yaml", "/policy.yaml", "/queries/stored.gq",
    "/%2e%2e%2fpolicy.yaml", "http://x/../secret.txt", "/static/../secret.txt",
)  # fmt: skip
FILE_NAMES: Final = (
    "../../stolen.csv", "/tmp/stolen.csv", "..\\..\\stolen.csv", "nodes/../../stolen.csv",
    "stolen\0.csv",
    "file:///tmp/stolen.csv", ".", "..", "", "~/stolen.csv", "CON", "a" * 5_000 + ".csv",
)  # fmt: skip


KEPT: Final = (SECRET, "root:", "protected_branches", "query: {", "graphs: {")
"""What files beside the graph say."""


def tree(root: Path) -> dict[str, int]:
    """Every file beside the graph and the spool, with its length."""
    own = ("stock", "spool")
    return {
        str(path.relative_to(root)): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in own
    }


def test_no_name_leads_out_of_the_graph(ben: Client, root: Path) -> None:
    before = tree(root)
    for name in ASIDE:
        for method, path, options in asking(name):
            if not path.isprintable():
                continue  # no client can send it
            answer = ben.request(method, path, **options)
            assert answer.status_code < 500, (path, options, answer.text)
            assert not any(kept in answer.text for kept in KEPT), (path, options)
    assert tree(root) == before
    assert not stolen(root.parent)


def test_no_path_leads_out_of_the_graph(guarded: Client, root: Path) -> None:
    """As bytes on the wire: clients that tidy up paths would not send them."""
    before = tree(root)
    token = f"Bearer {TOKENS['ben']}"
    for target in RAW:
        for method in ("GET", "POST", "DELETE"):
            (answer,) = exchange(guarded.url, request(method, target, Authorization=token))
            assert 400 <= answer.status < 500, (method, target, answer.body)
            assert not any(kept.encode() in answer.body for kept in KEPT), (method, target)
    assert tree(root) == before


def test_no_name_of_a_file_leads_out_of_the_spool(guarded: Client, root: Path) -> None:
    before = tree(root)
    token = f"Bearer {TOKENS['ben']}"
    for name in FILE_NAMES:
        for form in ('filename="{}"', "filename*=UTF-8''{}", 'name="file"; filename="{}"'):
            told = f'form-data; name="file"; {form.format(name)}'
            body = (
                f"--b\r\nContent-Disposition: {told}\r\n\r\nsku,name\nf1,n\n\r\n--b--\r\n"
            ).encode()
            (answer,) = exchange(
                guarded.url,
                request(
                    "POST", "/load/files?branch=draft&type=Part&format=csv", body,
                    Authorization=token, Content_Type="multipart/form-data; boundary=b",
                ),
            )  # fmt: skip
            assert answer.status in (200, 400), (name, form, answer.body)
    assert tree(root) == before
    assert not [path for path in (root.parent, root, root / "spool") if stolen(path)]


def stolen(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if "stolen" in path.name]


def test_files_of_the_server_cannot_be_loaded(ben: Client, root: Path) -> None:
    """Data is data: a name in its place is not followed."""
    for name in (str(root / "secret.jsonl"), f"@{root / 'secret.jsonl'}", "secret.jsonl"):
        for path in ("/load", "/ingest"):
            answer = ben.post(path, {"data": name})
            assert answer.status_code == 400
            assert SECRET not in answer.text


def test_blobs_elsewhere_are_not_fetched_for_anybody(ben: Client, root: Path) -> None:
    """An address in a row is told, not opened."""
    for sku, uri in (("u1", (root / "secret.txt").as_uri()), ("u2", "s3://bucket/secret")):
        data = {"type": "Part", "data": {"sku": sku, "name": "n", "drawing": uri}}
        answer = ben.post("/load", {"data": json.dumps(data), "branch": "draft"})
        assert answer.status_code == 200, answer.text
        where = {"type": "Part", "id": sku, "property": "drawing", "branch": "draft"}
        answer = ben.get("/blob", params=where)
        assert answer.status_code == 400
        assert SECRET not in answer.text
