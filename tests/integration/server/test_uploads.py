"""Uploads: data of any size goes through the spool into one commit, or nothing is left of it."""

from __future__ import annotations

import gzip
import json
import socket
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.served import document, ended, lines, new_stock, part, stock_server
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_left(root: Path, client: Client) -> Iterator[None]:
    yield
    assert list((root / "spool" / "uploads").iterdir()) == []


def send(client: Client, data: bytes, **parameters: Any) -> Any:
    headers = parameters.pop("headers", {})
    return client.request("POST", "/load/ndjson", content=data, params=parameters, headers=headers)


def rows(stock: Omnigraph, sku: str, branch: str = "main") -> Any:
    version = stock.snapshot(branch).manifest_version
    return stock.entity_at("node:Part", sku, version=version, branch=branch)


def test_lines_are_loaded_with_one_commit(client: Client, stock: Omnigraph) -> None:
    before = stock.list_commits()[0]
    found = document(send(client, lines([part("n1"), part("n2")])))
    assert found["tables"] == [{"table_key": "node:Part", "rows_loaded": 2}]
    assert (found["nodes_loaded"], found["branch_created"]) == (2, False)
    head = stock.list_commits()[0]
    assert head.parent_commit_id == before.graph_commit_id
    assert found["commit"] == head.to_json()


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
def test_gzip_is_unpacked(client: Client, stock: Omnigraph, headers: dict[str, str]) -> None:
    sku = f"z{len(headers)}"
    # Two members and a filled-up end, as `cat a.gz b.gz` and some tools make them.
    packed = gzip.compress(lines([part(sku)])) + gzip.compress(lines([part(f"{sku}b")])) + b"\0" * 9
    assert document(send(client, packed, headers=headers))["nodes_loaded"] == 2
    assert rows(stock, sku) is not None
    assert rows(stock, f"{sku}b") is not None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (gzip.compress(lines([part("t1")]))[:-9], "breaks off"),
        (gzip.compress(gzip.compress(lines([part("t2")]))), "compressed twice"),
        (gzip.compress(b"")[:10] + b"\xff" * 40, "damaged"),
    ],
)
def test_damaged_gzip_is_refused(client: Client, data: bytes, text: str) -> None:
    found = document(send(client, data), 400)
    assert text in found["error"]


def test_other_encodings_are_refused(client: Client) -> None:
    found = document(send(client, b"x", headers={"Content-Encoding": "br"}), 415)
    assert "gzip" in found["error"]


def test_a_missing_branch_is_forked(client: Client, stock: Omnigraph) -> None:
    missing = document(send(client, lines([part("f1")]), branch="fresh"), 404)
    assert missing["reason"] == "not_found.branch"
    found = document(send(client, lines([part("f1")]), branch="fresh", **{"from": "main"}))
    assert (found["branch_created"], found["base_branch"]) == (True, "main")
    assert rows(stock, "f1") is None
    assert rows(stock, "f1", "fresh") is not None


def test_rejected_records_come_back(client: Client, stock: Omnigraph) -> None:
    bad = lines([part("r1"), {"type": "Part", "data": {"sku": "r2"}}])
    refused = document(send(client, bad, rejects=True), 400)
    (entry,) = [json.loads(line) for line in refused["details"]["rejects"].splitlines()]
    assert entry["line"] == 2
    assert refused["details"]["violations"]
    assert rows(stock, "r1") is None
    found = document(send(client, bad, rejects=True, skip_bad=True))
    assert (found["records_rejected"], found["nodes_loaded"]) == (1, 1)
    assert json.loads(found["rejects"])["line"] == 2
    assert rows(stock, "r1") is not None


def test_a_dry_run_writes_nothing(client: Client, stock: Omnigraph) -> None:
    found = document(send(client, lines([part("d1")]), dry_run=True))
    assert (found["dry_run"], found["commit"]) == (True, None)
    assert rows(stock, "d1") is None


def test_a_demanded_head_must_be_there(client: Client, stock: Omnigraph) -> None:
    old = stock.list_commits()[-1].graph_commit_id
    header = {"Omnigraph-If-Graph-Commit": old}
    found = document(send(client, lines([part("h1")]), headers=header), 412)
    assert found["details"]["expected"] == old
    assert rows(stock, "h1") is None


def test_a_repeat_loads_nothing(client: Client, stock: Omnigraph) -> None:
    data = lines([part("k1")])
    first = document(send(client, data, headers={"Idempotency-Key": "load-k1"}))
    again = document(send(client, data, headers={"Idempotency-Key": "load-k1"}))
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["commit_id"] == again["commit_id"]


def test_bad_parameters_are_told(client: Client) -> None:
    found = document(send(client, b"", mode="replace"), 422)
    assert "mode" in found["error"]


# Files


def table(**columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


def send_files(client: Client, *files: tuple[str, bytes], **parameters: Any) -> Any:
    headers = parameters.pop("headers", {})
    return client.request(
        "POST",
        "/load/files",
        files=[("file", file) for file in files],
        params=parameters,
        headers=headers,
    )


def test_files_of_all_formats_land_together(client: Client, stock: Omnigraph) -> None:
    found = document(
        send_files(
            client,
            ("Part.csv", b"sku,name\nc1,from csv\n"),
            ("nodes/Bin.parquet", table(code=["c9"])),
            ("edges/Holds.csv.gz", gzip.compress(b"src,dst\nc9,c1\n")),
            ("more.jsonl", lines([part("c2")])),
        )
    )
    counts = {table["table_key"]: table["rows_loaded"] for table in found["tables"]}
    assert counts == {"edge:Holds": 1, "node:Bin": 1, "node:Part": 2}
    assert len({commit.graph_commit_id for commit in stock.list_commits(limit=1)}) == 1
    assert rows(stock, "c1")["name"] == "from csv"


def test_names_are_no_paths(client: Client, root: Path) -> None:
    named = "../../../escaped.jsonl"
    document(send_files(client, (named, lines([part("e1")]))))
    assert not list(root.rglob("escaped*"))


def test_problems_are_told_by_the_names_of_the_client(client: Client, root: Path) -> None:
    found = document(send_files(client, ("my parts.jsonl", b'{"type": "Nut", "data": {}}\n')), 400)
    assert found["error"].startswith("my parts.jsonl:1")
    assert found["details"]["violations"][0]["file"] == "my parts.jsonl"
    untold = document(send_files(client, ("my parts.csv", b"sku\nx\n")), 400)
    assert untold["error"].startswith("my parts.csv: cannot tell the type")
    assert str(root) not in json.dumps([found, untold])


def test_type_and_format_can_be_given(client: Client, stock: Omnigraph) -> None:
    data = b"sku,name\ng1,given\n"
    document(send_files(client, ("export (1).txt", data), format="csv", type="Part"))
    assert rows(stock, "g1")["name"] == "given"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"--x\r\n", "multipart/form-data; boundary=x", 400),
        (b"", "multipart/form-data; boundary=x", 400),
        (b"--x--\r\n", "multipart/form-data; boundary=x", 400),
        (b"--x\r\nno headers", "multipart/form-data; boundary=x", 400),
        (b"--x\r\n\r\ndata\r\n--x--\r\n", "multipart/form-data; boundary=x", 400),
        (
            b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\nv\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
            400,
        ),
        (b"{}", "multipart/form-data", 400),
        (b"{}", "application/json", 415),
    ],
)
def test_what_is_no_multipart_is_refused(
    client: Client, body: bytes, kind: str, status: int
) -> None:
    response = client.request("POST", "/load/files", content=body, headers={"Content-Type": kind})
    assert document(response, status)["code"] == "bad_request"


# Jobs


def test_a_load_as_a_job(client: Client, stock: Omnigraph) -> None:
    data = lines(part(f"j{number}") for number in range(50))
    response = send(client, data, headers=ASYNC)
    job = document(response, 202)
    assert response.headers["Location"] == f"/jobs/{job['job_id']}"
    assert response.headers["Preference-Applied"] == "respond-async"
    assert (job["operation"], job["branch"], job["status"]) == ("load", "main", "running")
    done = ended(client, job)
    assert done["status"] == "done", done
    assert (done["progress"]["read"], done["progress"]["bytes"]) == (50, len(data))
    assert done["result"]["nodes_loaded"] == 50
    head = stock.list_commits()[0]
    assert done["result"]["commit_id"] == head.graph_commit_id
    assert stock.get_run(job["run_id"]).published_snapshot_id == head.graph_commit_id
    assert rows(stock, "j49") is not None


def test_a_job_that_fails_says_why(client: Client, stock: Omnigraph) -> None:
    bad = lines([{"type": "Part", "data": {"sku": "b1"}}])
    job = document(send(client, bad, headers=ASYNC, rejects=True), 202)
    failed = ended(client, job)
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "bad_request"
    assert json.loads(failed["error"]["details"]["rejects"])["line"] == 1
    assert stock.get_run(job["job_id"]).status == "failed"


def test_a_job_under_a_key_is_begun_once(client: Client, stock: Omnigraph) -> None:
    headers = {**ASYNC, "Idempotency-Key": "job-1"}
    data = lines([part("once1")])
    first = document(send(client, data, headers=headers), 202)
    again = document(send(client, data, headers=headers), 202)
    assert first["job_id"] == again["job_id"]
    ended(client, first)
    assert document(send(client, data, headers=headers), 202)["job_id"] == first["job_id"]
    other = document(send(client, lines([part("once2")]), headers=headers), 409)
    assert "another request" in other["error"]


@pytest.mark.parametrize(
    "other",
    [
        {"dry_run": True},
        {"skip_bad": True},
        {"rejects": True},
        {"mode": "append"},
        {"embed": "off"},
        {"from": "main"},
        {"headers": {"Omnigraph-If-Graph-Commit": "another"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_load_under_the_key_is_refused(client: Client, other: dict[str, Any]) -> None:
    name = next(iter(other))
    headers = {**ASYNC, "Idempotency-Key": f"other-{name}"}
    data = lines([part(f"other-{name}")])
    ended(client, document(send(client, data, headers=headers), 202))
    changed = {**other, "headers": {**headers, **other.get("headers", {})}}
    refused = document(send(client, data, **changed), 409)
    assert "another request" in refused["error"]


@pytest.mark.parametrize("is_job_first", [True, False])
def test_loads_and_jobs_share_their_keys(
    client: Client, stock: Omnigraph, *, is_job_first: bool
) -> None:
    key = {"Idempotency-Key": f"either-{is_job_first}"}
    data = lines([{"edge": "Holds", "from": "b1", "to": "p1", "data": {"amount": 77}}])

    def at_once() -> Any:
        return document(send(client, data, headers=key, mode="append"))

    def as_a_job() -> Any:
        job = document(send(client, data, headers={**ASYNC, **key}, mode="append"), 202)
        return ended(client, job)["result"]

    first, second = (as_a_job, at_once) if is_job_first else (at_once, as_a_job)
    loaded = first()
    head = stock.head_commit_id_for_branch()
    again = second()
    assert (loaded["repeated"], again["repeated"]) == (False, True)
    assert loaded["commit_id"] == again["commit_id"] == head
    assert stock.head_commit_id_for_branch() == head


def test_a_job_forks_a_missing_branch(client: Client, stock: Omnigraph) -> None:
    job = document(
        send(client, lines([part("w1")]), headers=ASYNC, branch="waiting", **{"from": "main"}), 202
    )
    done = ended(client, job)
    assert (done["status"], done["result"]["branch_created"]) == ("done", True)
    assert rows(stock, "w1", "waiting") is not None
    missing = document(send(client, lines([part("w1")]), headers=ASYNC, branch="nowhere"), 404)
    assert missing["reason"] == "not_found.branch"


def test_a_direct_job_checks_the_head(client: Client, stock: Omnigraph) -> None:
    old = stock.list_commits()[-1].graph_commit_id
    headers = {**ASYNC, "Omnigraph-If-Graph-Commit": old}
    failed = ended(client, document(send(client, lines([part("q1")]), headers=headers), 202))
    assert failed["error"]["reason"] == "manifest.precondition_failed"
    dry = document(send(client, lines([part("q1")]), headers=ASYNC, dry_run=True), 202)
    assert ended(client, dry)["result"]["dry_run"] is True
    assert rows(stock, "q1") is None


# Limits


def test_an_upload_has_a_most(
    root: Path, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_UPLOAD_MAX", "1000")
    packed = gzip.compress(b" " * 5_000)
    with stock_server(root) as small:
        for data in (b" " * 2_000, packed):
            found = document(send(small, data), 413)
            assert "1,000 bytes" in found["error"]
        found = document(send_files(small, ("a.jsonl.gz", packed)), 413)
        assert found["code"] == "bad_request"


def test_what_unpacks_to_far_too_much_is_refused(client: Client) -> None:
    bomb = gzip.compress(bytes(80 * 2**20))
    found = document(send(client, bomb), 413)
    assert "compressed bytes stand for" in found["error"]


def test_an_upload_that_breaks_off_leaves_nothing(client: Client, root: Path) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    uploads = root / "spool" / "uploads"
    with socket.create_connection((host, int(port))) as connection:
        head = "POST /load/files HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n"
        connection.sendall(
            f"{head}Content-Type: multipart/form-data; boundary=x\r\n\r\n".encode()
            + b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
            + b"{}\n" * 700_000
        )
        wait_until(lambda: any(uploads.iterdir()), "the upload to begin")
    wait_until(lambda: not any(uploads.iterdir()), "the upload to be removed")
