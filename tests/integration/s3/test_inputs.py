"""Files on S3 are loaded from where they are."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import boto3
import obstore
import pyarrow as pa
import pytest
from pyarrow import parquet

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, DataError
from omnigraph_core.spark.ingest.parts import split
from omnigraph_core.storage import inputs
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.input_folders import MISTAKES, mistakes
from tests.support.input_folders import inputs as folder_inputs
from tests.support.load_worlds import SCHEMA as WORLD
from tests.support.load_worlds import outcome
from tests.support.s3 import s3_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.counting_proxy import CountingProxy
    from tests.support.s3 import S3Server

SCHEMA = "node Part { sku: String @key  stock: I64? }"


def put(server: S3Server, path: str, content: bytes) -> str:
    obstore.put(s3_store(server.bucket, server.endpoint), path, content)
    return f"s3://{server.bucket}/{path}"


def lines(*skus: str) -> bytes:
    return b"\n".join(
        json.dumps({"type": "Part", "data": {"sku": sku, "stock": 1}}).encode() for sku in skus
    )


@pytest.mark.usefixtures("s3_root")
def test_files_of_every_kind(s3_server: S3Server, tmp_path: Path) -> None:
    table = pa.BufferOutputStream()
    parquet.write_table(pa.table({"sku": ["c"], "stock": pa.array([2], pa.int64())}), table)
    given = [
        put(s3_server, "inputs/a.jsonl", lines("a")),
        put(s3_server, "inputs/b.jsonl.gz", gzip.compress(lines("b"))),
        put(s3_server, "inputs/nodes/Part.parquet", bytes(table.getvalue())),
    ]
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    assert graph.load(given, mode="append").nodes_loaded == 3


@pytest.mark.usefixtures("s3_root")
def test_mistakes_are_named_by_their_address(s3_server: S3Server, tmp_path: Path) -> None:
    address = put(s3_server, "inputs/bad.jsonl", lines("a") + b"\n{")
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    with pytest.raises(DataError) as caught:
        graph.load(address)
    assert f"{address}:2" in caught.value.message


@pytest.mark.usefixtures("s3_root")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("inputs/none.jsonl", "no such file: s3://"),
        ("nothing/", "no files to load in the directory s3://"),
        ("nothing/*.jsonl", "no file matches s3://"),
    ],
)
def test_no_such_file(s3_server: S3Server, tmp_path: Path, path: str, text: str) -> None:
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    with pytest.raises(ConfigError, match=text):
        graph.load(f"s3://{s3_server.bucket}/{path}")


def names(server: S3Server, given: str) -> list[str]:
    start = f"s3://{server.bucket}/"
    return [(source.name or "").removeprefix(start) for source in open_sources(start + given)]


@pytest.mark.usefixtures("s3_root")
def test_directories_and_patterns(s3_server: S3Server) -> None:
    for path in ("b.jsonl", "a.jsonl", "sub/c.jsonl", "sub-1/d.jsonl", "_x/e.jsonl", "w[1].jsonl"):
        put(s3_server, f"tree/{path}", lines(path))
    put(s3_server, "tree-2/f.jsonl", lines("f"))
    everything = ["a.jsonl", "b.jsonl", "sub-1/d.jsonl", "sub/c.jsonl", "w[1].jsonl"]
    for given, found in [
        ("tree", everything),
        ("tree/", everything),
        ("tree/[ab].jsonl", ["a.jsonl", "b.jsonl"]),
        ("tree/**/?.jsonl", ["a.jsonl", "b.jsonl", "sub-1/d.jsonl", "sub/c.jsonl"]),
        ("tree/sub*", ["sub-1/d.jsonl", "sub/c.jsonl"]),
        ("tree/_x/*", ["_x/e.jsonl"]),
        ("tree/w[1].jsonl", ["w[1].jsonl"]),
    ]:
        assert names(s3_server, given) == [f"tree/{name}" for name in found]
    assert names(s3_server, "tr*/f.jsonl") == ["tree-2/f.jsonl"]


@pytest.mark.usefixtures("s3_root")
def test_objects_in_place_of_directories_are_no_files(s3_server: S3Server) -> None:
    put(s3_server, "marked/Part.parquet/a.jsonl", lines("a"))
    client = boto3.session.Session().client("s3", endpoint_url=s3_server.endpoint)
    for key in ("marked/", "marked/empty/", "marked/Part.parquet/"):
        client.put_object(Bucket=s3_server.bucket, Key=key, Body=b"")
    for given in ("marked", "marked/", "marked/*", "m*"):
        assert names(s3_server, given) == ["marked/Part.parquet/a.jsonl"]


@pytest.mark.usefixtures("s3_root")
def test_mistakes_in_a_directory(s3_server: S3Server, tmp_path: Path) -> None:
    for name, data in folder_inputs(has_mistakes=True).items():
        put(s3_server, f"mistaken/{name}", data)
    graph = Omnigraph.init(str(tmp_path / "graph"), WORLD)
    address = f"s3://{s3_server.bucket}/mistaken/"
    kind, report = outcome(lambda: graph.load(address, mode="append"))
    assert (kind, mistakes(report)) == ("refused", MISTAKES)


def test_a_listing_is_all_it_takes_to_find_files(
    s3_server: S3Server, s3_root: str, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = s3_root.removeprefix(f"s3://{s3_server.bucket}/")
    for number in range(12):
        put(s3_server, f"{prefix}/{number % 3}/{number}.jsonl", lines(str(number)))
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT")]:
        monkeypatch.setenv(name, proxy.endpoint)
    inputs._store.cache_clear()
    for given in (f"{s3_root}/", f"{s3_root}/**/*.jsonl"):
        proxy.clear()
        assert len(open_sources(given)) == 12
        assert proxy.summary() == {"GET list": 1}
    proxy.clear()
    assert len(open_sources(s3_root)) == 12
    assert proxy.summary() == {"GET list": 1, "HEAD": 1}
    put(s3_server, f"{prefix}/large.jsonl", (lines("x") + b"\n") * 100_000)
    sources = open_sources(f"{s3_root}/")
    proxy.clear()
    places = places_of(sources)
    parts = split(sources, places, part_bytes=1 << 20)
    assert len(parts) == 12 + -(-sources[-1].size // (1 << 20))
    assert proxy.summary() == {"GET": 26, "HEAD": 26}, "each file is looked into twice"
    assert sum(request.received for request in proxy.requests) < 300_000
    inputs._store.cache_clear()
