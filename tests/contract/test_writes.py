"""Loads, mutations, exports and blobs: the same on every store."""

from __future__ import annotations

import base64
import gzip
import json
import random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConfigError,
    ConflictError,
    ConstraintViolation,
    DuplicateKey,
    EndpointNotFound,
    NotFoundError,
    PreconditionFailed,
)
from omnigraph_core.history.snapshots import ReadTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")

SCHEMA = """
node Article {
  slug: String @key
  title: String?
  views: I64? @range(views, 0..)
  tags: [String]?
  shape: Vector(3)?
  scan: Blob?
}

node Author {
  name: String @key
  email: String? @unique
}

edge WrittenBy: Article -> Author @card(0..2) {
  on: Date?
  @unique(src, dst)
}
"""
BIG = random.Random(7).randbytes(300_000)
ADDRESS = "https://example.org/scans/2.png"
ADD = "query add($name: String, $email: String?) { insert Author { name: $name, email: $email } }"
COUNT = """
query count($slug: String, $views: I64) {
  update Article set { views: $views } where slug = $slug
}
"""


def article(slug: str, **given: object) -> dict[str, object]:
    return {"type": "Article", "data": {"slug": slug, **given}}


def author(name: str, email: str | None = None) -> dict[str, object]:
    return {"type": "Author", "data": {"name": name, "email": email}}


def written_by(slug: str, name: str, **given: object) -> dict[str, object]:
    return {"edge": "WrittenBy", "from": slug, "to": name, "data": given}


def lines(*records: dict[str, object]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def scan(data: bytes) -> str:
    return f"base64:{base64.b64encode(data).decode()}"


SOME = lines(
    written_by("one", "Ann", on="2024-02-29", id="e1"),
    article("one", title="Ünïcode \U0001f600", views=2**53 + 1, tags=["a", ""], shape=[1, 0.5, -2]),
    article("two", scan=scan(BIG)),
    article("three", scan=ADDRESS, tags=[]),
    author("Ann", "ann@example.org"),
    author("Bob"),
)


@pytest.fixture
def graph(graph_root: str) -> Omnigraph:
    made = Omnigraph.init(f"{graph_root}/graph", SCHEMA)
    made.load(SOME)
    return made


def exported(og: Omnigraph, target: str | ReadTarget = "main") -> bytes:
    return b"".join(og.export_jsonl(target))


def authors(og: Omnigraph, branch: str = "main") -> list[str]:
    return sorted(og.table(og.snapshot(branch), "node:Author").read(["id"])["id"].to_pylist())


def test_a_round_trip(graph: Omnigraph, graph_root: str, tmp_path: Path) -> None:
    """What was loaded and changed comes out, and a graph made of that is the same."""
    graph.mutate(ADD, {"name": "Cid", "email": "cid@example.org"})
    graph.mutate(COUNT, {"slug": "two", "views": 3})
    graph.mutate('query drop() { delete Author where name = "Bob" }')
    before = exported(graph)
    packed = tmp_path / "all.jsonl.gz"
    packed.write_bytes(gzip.compress(before))
    copy = Omnigraph.init(f"{graph_root}/copy", SCHEMA)
    loaded = copy.load(packed)
    assert (loaded.nodes_loaded, loaded.edges_loaded) == (5, 1)
    assert exported(copy) == before
    records = [json.loads(line) for line in before.splitlines()]
    articles = {r["data"]["slug"]: r["data"] for r in records if r.get("type") == "Article"}
    assert articles["one"]["views"] in (2**53 + 1, str(2**53 + 1))
    assert articles["one"]["title"] == "Ünïcode \U0001f600"
    assert articles["two"]["scan"] == scan(BIG)
    assert articles["two"]["views"] == 3
    assert authors(copy) == authors(graph) == ["Ann", "Cid"]


def test_a_round_trip_by_tables(graph: Omnigraph, graph_root: str, tmp_path: Path) -> None:
    files = graph.export_parquet(tmp_path / "out")
    assert sorted(pq.read_metadata(file.path).num_rows for file in files) == [1, 2, 3]
    copy = Omnigraph.init(f"{graph_root}/copy", SCHEMA)
    copy.load([file.path for file in files])
    assert exported(copy) == exported(graph)


def test_old_states_can_be_exported(graph: Omnigraph) -> None:
    before, head = exported(graph), graph.head_commit_id_for_branch()
    graph.mutate(COUNT, {"slug": "one", "views": 1})
    assert exported(graph) != before
    assert exported(graph, ReadTarget(snapshot_id=head)) == before


def test_blobs(graph: Omnigraph) -> None:
    def read(slug: str, offset: int = 0, length: int | None = None) -> bytes | None:
        return graph.read_blob("Article", slug, "scan", offset=offset, length=length)

    assert read("two") == BIG
    for offset, length in ((0, 1), (65_535, 2), (131_072, 100_000), (299_999, 10), (300_001, 5)):
        assert read("two", offset, length) == BIG[offset : offset + length]
    assert read("one") is None
    assert graph.open_blob("Article", "three", "scan").uri == ADDRESS
    with pytest.raises(ConfigError, match="kept at"):
        read("three")
    with pytest.raises(NotFoundError):
        read("four")
    graph.mutate(COUNT, {"slug": "two", "views": 9})
    assert read("two", 1000, 1000) == BIG[1000:2000], "an update keeps what it does not name"
    graph.optimize()
    assert read("two") == BIG


WRITES: dict[str, Callable[[Omnigraph, str], object]] = {
    "load": lambda og, name: og.load(lines(author(name)), mode="append", idempotency_key="k"),
    "mutate": lambda og, name: og.mutate(ADD, {"name": name}, idempotency_key="k"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_repeated_request(write: Callable[[Omnigraph, str], object], graph: Omnigraph) -> None:
    first = write(graph, "Cid")
    graph.mutate('query drop() { delete Author where name = "Cid" }')
    version, rows = graph.snapshot().manifest_version, exported(graph)
    for handle in (graph, Omnigraph.open(graph.uri)):
        again = write(handle, "Cid")
        assert (first.is_repeat, again.is_repeat) == (False, True)
        assert again.commit == first.commit
        with pytest.raises(ConflictError, match="idempotency key"):
            write(handle, "Dan")
    assert graph.snapshot().manifest_version == version
    assert exported(graph) == rows


def test_a_dry_run(graph: Omnigraph) -> None:
    """As the load itself, but for what it leaves behind."""
    more = lines(author("Cid"), written_by("two", "Cid"))
    head, rows = graph.head_commit_id_for_branch(), exported(graph)
    tried = graph.load(more, dry_run=True)
    assert (tried.is_dry_run, tried.commit) == (True, None)
    for bad, error in REFUSED:
        for is_dry in (True, False):
            with pytest.raises(error):
                graph.load(lines(*bad), mode="append", dry_run=is_dry)
    assert (graph.head_commit_id_for_branch(), exported(graph)) == (head, rows)
    done = graph.load(more)
    assert (done.tables, done.records_rejected) == (tried.tables, 0)


REFUSED = [
    ([author("Ann")], DuplicateKey),
    ([author("Cid", "ann@example.org")], ConstraintViolation),
    ([article("four", views=-1)], ConstraintViolation),
    ([written_by("one", "Nobody")], EndpointNotFound),
    ([written_by("one", "Ann")], ConstraintViolation),
    ([written_by("two", name) for name in "ab"] + [author(name) for name in "abc"]
     + [written_by("two", "c")], ConstraintViolation),
]  # fmt: skip


def test_only_onto_a_named_commit(graph: Omnigraph) -> None:
    head = graph.head_commit_id_for_branch()
    graph.load(lines(author("Cid")), if_commit=head)
    with pytest.raises(PreconditionFailed):
        graph.load(lines(author("Dan")), if_commit=head)
    with pytest.raises(PreconditionFailed):
        graph.mutate(ADD, {"name": "Dan"}, if_commit=head)
    assert authors(graph) == ["Ann", "Bob", "Cid"]


def test_an_ingest(graph: Omnigraph) -> None:
    made = graph.ingest(lines(author("Cid")), branch="review/1")
    again = graph.ingest(lines(author("Dan")), branch="review/1")
    assert (made.branch_created, again.branch_created) == (True, False)
    assert authors(graph, "review/1") == ["Ann", "Bob", "Cid", "Dan"]
    assert authors(graph) == ["Ann", "Bob"]
    overwritten = graph.load(lines(author("Ann")), branch="review/1", mode="overwrite")
    assert overwritten.nodes_loaded == 1
    assert authors(graph, "review/1") == ["Ann"]
