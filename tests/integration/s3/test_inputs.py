"""Files on S3 are loaded from where they are."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pytest
from pyarrow import parquet

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, DataError
from tests.support.s3 import s3_store

if TYPE_CHECKING:
    from pathlib import Path

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
    [("inputs/none.jsonl", "no such file"), ("inputs/", "not the address of a file")],
)
def test_no_such_file(s3_server: S3Server, tmp_path: Path, path: str, text: str) -> None:
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    with pytest.raises(ConfigError, match=text):
        graph.load(f"s3://{s3_server.bucket}/{path}")
