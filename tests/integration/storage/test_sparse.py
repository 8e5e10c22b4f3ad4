"""Rows that lie far apart are read from an object store with little around them, and once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.storage import sparse
from omnigraph_core.storage.dataset import create_table, open_table
from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support.counting_proxy import CountingProxy
from tests.support.parts import present

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.storage.dataset import Table
    from tests.support.s3 import S3Server

COUNT = 60_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("number", pa.int64()),
        pa.field("words", pa.list_(pa.utf8())),
        pa.field("vector", pa.list_(pa.float32(), 8)),
        pa.field("bytes", pa.large_binary()),
    ]
)


def content() -> pa.Table:
    chance = np.random.default_rng(3)
    vectors = pa.FixedSizeListArray.from_arrays(chance.random(COUNT * 8, dtype=np.float32), 8)
    columns = {
        "id": [f"row-{chance.integers(2**60):020}-{n}" for n in range(COUNT)],
        "number": [None if n % 7 == 0 else n for n in range(COUNT)],
        "words": [["a", "b"][: n % 3] for n in range(COUNT)],
        "vector": vectors,
        "bytes": [None if n % 5 == 0 else b"x" * (n % 4) for n in range(COUNT)],
    }
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return content()


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[CountingProxy]:
    with CountingProxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def table(
    rows: pa.Table, s3_root: str, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> Table:
    store = open_store(s3_root)
    written = present(stage_append(create_table(store, "nodes/sparse", SCHEMA), rows))
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
    return open_table(open_store(s3_root), "nodes/sparse", written.physical_version)


def far_apart(count: int, start: int = 0) -> pa.Array:
    return pa.array(np.linspace(start, COUNT - 10, count).astype(np.uint64))


def data_bytes(proxy: CountingProxy) -> int:
    return sum(request.received for request in proxy.requests if "/data/" in request.path)


def test_rows_come_in_the_order_given_with_every_column(table: Table, rows: pa.Table) -> None:
    places = pa.array([50_000, 3, 3, 41_000, 0], pa.uint64())
    expected = rows.take(pa.array([50_000, 3, 3, 41_000, 0]))
    for columns in (["number"], ["id", "number"], ["id", "words", "vector"], SCHEMA.names):
        taken = take_rows(table, places, columns)
        assert taken.to_pylist() == expected.select(columns).to_pylist()
        assert taken.schema.equals(pa.schema([SCHEMA.field(name) for name in columns]))


def test_what_was_read_is_not_read_again(table: Table, proxy: CountingProxy) -> None:
    take_rows(table, far_apart(50), ["id", "number"])
    proxy.clear()
    take_rows(table, far_apart(50), ["number"])
    take_rows(table.reopened(), far_apart(50).slice(10, 20), ["id"])
    assert data_bytes(proxy) == 0
    take_rows(table, far_apart(50), ["id", "vector"])
    assert data_bytes(proxy) > 0


def test_little_is_read_around_them(table: Table, proxy: CountingProxy) -> None:
    take_rows(table, far_apart(1), ["id"])
    proxy.clear()
    take_rows(table, far_apart(40, start=7), ["id"])
    sparse_bytes = data_bytes(proxy)
    proxy.clear()
    table.dataset.take(far_apart(40, start=11).to_pylist(), columns=["id"])
    assert sparse_bytes * 3 < data_bytes(proxy)


def test_no_more_is_kept_than_allowed(
    table: Table, rows: pa.Table, proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "_KEPT_BYTES", 100)
    places = far_apart(50)
    for _ in range(2):
        proxy.clear()
        taken = take_rows(table, places, ["id"])
        assert taken.column("id").to_pylist() == rows.column("id").take(places).to_pylist()
        assert data_bytes(proxy) > 0


def test_an_address_without_a_row_is_refused(table: Table) -> None:
    with pytest.raises((InvariantBroken, StorageError)):
        take_rows(table, pa.array([1, 2**40], pa.uint64()), ["id"])
