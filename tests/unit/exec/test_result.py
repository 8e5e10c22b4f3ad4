"""The answer to a read in every form."""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.result import QueryResult
from omnigraph_core.query.descriptor import ResultColumn, ValueKind

if TYPE_CHECKING:
    from omnigraph_core.manifest.snapshot import Snapshot

MOMENT = dt.datetime(2026, 3, 1, 12, 30, 0, 250_000, dt.UTC)
MILLISECONDS = round(MOMENT.timestamp() * 1000)
NODE = pa.struct(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("at", pa.date64()),
        pa.field("tags", pa.list_(pa.utf8())),
    ]
)


def moments(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.date64())


def nodes() -> pa.Array:
    ids = pa.array(["a", "b", ""])
    tags = pa.array([["x", None], None, []], pa.list_(pa.utf8()))
    parts = [ids, moments([MILLISECONDS, None, 0]), tags]
    mask = pa.array([False, False, True])
    return pa.StructArray.from_arrays(parts, fields=list(NODE), mask=mask)


ROWS = pa.table(
    {
        "n": nodes(),
        "big": pa.array([2**53 - 1, 2**53, -(2**53)], pa.int64()),
        "bigs": pa.array([[2**64 - 1, 1], None, []], pa.list_(pa.uint64())),
        "f": pa.array([1.0, float("nan"), float("-inf")]),
        "d": pa.array([dt.date(2026, 1, 2), None, dt.date(1, 1, 1)]),
        "at": moments([MILLISECONDS, None, -1]),
        "all": pa.ListArray.from_arrays([0, 2, 2, 3], moments([0, None, MILLISECONDS])),
        "v": pa.array([[1.0, 0.5], None, [0.0, 2.0]], pa.list_(pa.float32(), 2)),
    }
)
COLUMNS = (ResultColumn("n", ValueKind.OBJECT, is_nullable=True, node_type="Part"),)


@pytest.fixture
def result() -> QueryResult:
    return QueryResult("q", COLUMNS, ROWS, cast("Snapshot", None))


def test_json(result: QueryResult) -> None:
    first, second, third = json.loads(result.to_json())
    assert first == {
        "n": {"id": "a", "at": "2026-03-01T12:30:00.250Z", "tags": ["x", None]},
        "big": 2**53 - 1,
        "bigs": [2**64 - 1, 1],
        "f": 1.0,
        "d": "2026-01-02",
        "at": "2026-03-01T12:30:00.250Z",
        "all": ["1970-01-01T00:00:00.000Z", None],
        "v": [1.0, 0.5],
    }
    assert second["n"] == {"id": "b", "at": None, "tags": None}
    assert [second[name] for name in ("bigs", "f", "d", "at", "all", "v")] == [
        None, "NaN", None, None, [], None,
    ]  # fmt: skip
    assert (third["n"], third["f"], third["at"]) == (
        None,
        "-Infinity",
        "1969-12-31T23:59:59.999Z",
    )
    assert result.to_pylist() == [first, second, third]


def test_json_for_javascript(result: QueryResult) -> None:
    rows = result.to_pylist(is_js_safe=True)
    assert [row["big"] for row in rows] == [2**53 - 1, str(2**53), str(-(2**53))]
    assert [row["bigs"] for row in rows] == [[str(2**64 - 1), 1], None, []]


def test_lines(result: QueryResult) -> None:
    lines = b"".join(result.iter_ndjson()).splitlines()
    assert [json.loads(line) for line in lines] == result.to_pylist()
    assert b"".join(result.iter_ndjson(is_js_safe=True)).count(str(2**53).encode()) == 2


def test_no_rows() -> None:
    empty = QueryResult("q", COLUMNS, ROWS.slice(0, 0), cast("Snapshot", None))
    assert (empty.to_json(), empty.to_pylist(), b"".join(empty.iter_ndjson())) == ("[]", [], b"")
    assert pa.ipc.open_stream(empty.to_ipc()).read_all().schema == ROWS.schema
    assert len(empty.to_pandas()) == 0 == len(empty.to_polars())


def test_arrow(result: QueryResult) -> None:
    assert result.to_arrow() is ROWS
    assert (result.num_rows, len(result)) == (3, 3)
    sent = pa.ipc.open_stream(result.to_ipc()).read_all()
    assert sent.schema == ROWS.schema
    assert sent.drop_columns("f").equals(ROWS.drop_columns("f"))  # NaN equals nothing
    assert [batch.num_rows for batch in result.to_batches(2)] == [2, 1]


def test_a_result_is_shown_in_a_line(result: QueryResult) -> None:
    assert repr(result) == "<QueryResult q: 3 rows of n>"


def test_columns_are_described(result: QueryResult) -> None:
    assert result.describe() == [{"name": "n", "kind": "object", "nullable": True}]


def test_pandas(result: QueryResult) -> None:
    frame = result.to_pandas()
    assert list(frame.columns) == ROWS.column_names
    assert frame["at"][0].to_pydatetime() == MOMENT
    assert frame["n"][0]["at"] == MOMENT
    assert frame["n"][2] is None
    assert list(frame["all"][2]) == [MOMENT.replace(tzinfo=None)]
    assert frame["d"][0] == dt.date(2026, 1, 2)


def test_polars(result: QueryResult) -> None:
    frame = result.to_polars()
    assert frame.columns == ROWS.column_names
    assert frame["at"].to_list()[0] == MOMENT
    assert frame["n"].to_list()[0] == {"id": "a", "at": MOMENT, "tags": ["x", None]}
    assert frame["all"].to_list()[2] == [MOMENT]
    assert frame["bigs"].to_list() == [[2**64 - 1, 1], None, []]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named(
    result: QueryResult, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=f"{library} is not installed"):
        getattr(result, f"to_{library}")()
