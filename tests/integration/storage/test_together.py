"""Rows of two versions of a table are read from the files that both have once, not by each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.dataset import create_table, open_table
from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.storage.together import read_together
from tests.support.counting_proxy import CountingProxy
from tests.support.parts import present
from tests.support.stores import new_prefix
from tests.support.table_writes import stage_upsert

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.storage.dataset import Table
    from tests.support.s3 import S3Server

COUNT = 40_000
CHANGED = 40
LOCATION = "nodes/together"
COLUMNS = ["id", "number", "vector"]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("number", pa.int64()),
        pa.field("vector", pa.list_(pa.float32(), 8)),
        pa.field("bytes", pa.large_binary()),
    ]
)
LEFT = np.linspace(0, COUNT - 10, CHANGED).astype(np.uint64)
RIGHT = LEFT + np.uint64(1)
"""Rows that each side has replaced: each is beside one that the other has."""


def rows(numbers: np.ndarray, what: str) -> pa.Table:
    chance = np.random.default_rng(5)
    vectors = chance.random(len(numbers) * 8, dtype=np.float32)
    columns = {
        "id": [f"row {number:09}" for number in numbers.tolist()],
        "number": chance.integers(2**62, size=len(numbers)),
        "vector": pa.FixedSizeListArray.from_arrays(vectors, 8),
        "bytes": [what.encode()] * len(numbers),
    }
    return pa.table(columns, schema=SCHEMA)


BASE = rows(np.arange(COUNT), "base")


@dataclass(frozen=True)
class Versions:
    """Two versions that were made of one, opened anew through the proxy."""

    left: Table
    right: Table
    proxy: CountingProxy

    def requests(self) -> int:
        return sum("/data/" in request.path for request in self.proxy.requests)


@pytest.fixture(scope="module")
def written(s3_server: S3Server) -> tuple[str, int, int]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        root = new_prefix(s3_server.bucket)
        base = present(stage_append(create_table(open_store(root), LOCATION, SCHEMA), BASE))
        sides = [stage_upsert(base, rows(LEFT, "left")), stage_upsert(base, rows(RIGHT, "right"))]
    left, right = (present(side).physical_version for side in sides)
    return root, left, right


@pytest.fixture
def versions(
    written: tuple[str, int, int], s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Versions]:
    root, left, right = written
    with CountingProxy(s3_server.port) as proxy:
        for name, value in s3_server.environment(endpoint=proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        store = open_store(root)
        tables = [open_table(store, LOCATION, version) for version in (left, right)]
        yield Versions(tables[0], tables[1], proxy)


def taken(table: Table, places: np.ndarray) -> list[dict[str, object]]:
    return take_rows(table, pa.array(places), COLUMNS).to_pylist()


def expected(places: np.ndarray) -> list[dict[str, object]]:
    return BASE.take(pa.array(places)).select(COLUMNS).to_pylist()


def test_each_gets_the_rows_that_the_other_has_replaced(versions: Versions) -> None:
    # The side that has replaced a row has it no more; the other still has it where it was.
    read_together(versions.left, RIGHT[::-1], versions.right, LEFT, SCHEMA.names)
    versions.proxy.clear()
    assert taken(versions.left, RIGHT) == expected(RIGHT)
    assert taken(versions.right, LEFT[::-1]) == expected(LEFT[::-1])
    assert versions.requests() == 0
    whole = take_rows(versions.left, pa.array(RIGHT[:3]))
    assert whole.to_pylist() == BASE.take(pa.array(RIGHT[:3])).to_pylist()


def test_it_takes_little_more_than_half_the_requests(versions: Versions) -> None:
    taken(versions.left, LEFT + np.uint64(3))  # what files say of themselves is known then
    versions.proxy.clear()
    taken(versions.left, RIGHT)
    taken(versions.right, LEFT)
    by_each = versions.requests()
    fresh = [table.at(table.dataset) for table in (versions.left, versions.right)]
    versions.proxy.clear()
    read_together(fresh[0], RIGHT, fresh[1], LEFT, COLUMNS)
    assert [taken(fresh[0], RIGHT), taken(fresh[1], LEFT)] == [expected(RIGHT), expected(LEFT)]
    assert versions.requests() < 0.65 * by_each


def test_what_a_version_has_replaced_stays_unknown_to_it(versions: Versions) -> None:
    read_together(versions.left, RIGHT, versions.right, LEFT, COLUMNS)
    with pytest.raises(InvariantBroken):
        taken(versions.left, LEFT)
    with pytest.raises(InvariantBroken):
        taken(versions.right, RIGHT[:1])


def test_fragments_of_one_name_are_not_mixed_up(versions: Versions) -> None:
    own = (np.uint64(1) << np.uint64(32)) | np.arange(CHANGED, dtype=np.uint64)
    both = np.concatenate([RIGHT, own]), np.concatenate([LEFT, own])
    read_together(versions.left, both[0], versions.right, both[1], COLUMNS)
    found = [take_rows(table, pa.array(own)) for table in (versions.left, versions.right)]
    assert [set(side.column("bytes").to_pylist()) for side in found] == [{b"left"}, {b"right"}]
    assert sorted(found[0].column("id").to_pylist()) == rows(LEFT, "").column("id").to_pylist()
    assert sorted(found[1].column("id").to_pylist()) == rows(RIGHT, "").column("id").to_pylist()


def test_rows_far_from_each_other_are_left_to_each(versions: Versions) -> None:
    versions.proxy.clear()
    read_together(versions.left, RIGHT, versions.right, LEFT + np.uint64(300), COLUMNS)
    assert versions.requests() == 0
