"""Export of real tables as JSONL: lines, their order, their limits."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.errors import DataError
from omnigraph_core.exec.json_rows import row_lines
from omnigraph_core.storage import lookup
from omnigraph_core.violations import Violations
from omnigraph_core.write import export
from omnigraph_core.write.export import export_jsonl, select_tables
from omnigraph_core.write.records import read_batches
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.exports import CATALOG, FULL, NOTE, SENSOR, WATCHES, Tables, note, sensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.storage.dataset import Table


def test_lines_by_table_and_id(full: Tables) -> None:
    ends = {"edge": "Watches", "from": "full", "to": "bare"}
    assert full.lines() == [
        {**ends, "data": {"id": "e1", "weight": None, "sketch": None}},
        {**ends, "data": {"id": "e2", "weight": 0.0, "sketch": None}},
        {"type": "Note", "data": {"id": "n1", "text": None}},
        {"type": "Note", "data": {"id": "n2", "text": ""}},
        {"type": "Sensor", "data": {"id": "bare", **dict.fromkeys(FULL), "name": "bare"}},
        {"type": "Sensor", "data": {"id": "full", **{k: seen for k, (_, seen) in FULL.items()}}},
    ]
    assert [list(line["data"]) for line in full.lines(SENSOR)] == [["id", *FULL]] * 2


def test_minus_zero_keeps_its_sign(full: Tables) -> None:
    weight = full.lines(WATCHES)[1]["data"]["weight"]
    assert math.copysign(1, weight) == -1


def test_empty_tables_have_no_lines(tables: Tables) -> None:
    assert list(export_jsonl(select_tables(CATALOG), tables.open)) == []


def test_no_types_are_nothing(full: Tables) -> None:
    assert list(export_jsonl((), full.open)) == []


def test_order_is_by_code_point(tables: Tables) -> None:
    ids = ["a", "B", "ü", "z", "\uffff", "😀", "", "a\x00", "aa", "é", "e\u0301", '["a","b"]']
    tables.append(NOTE, [note(id) for id in ids[:5]])
    tables.append(NOTE, [note(id) for id in ids[5:]])
    assert [line["data"]["id"] for line in tables.lines(NOTE)] == sorted(ids)


@pytest.mark.parametrize("batch_rows", [1, 2, 17, 8192])
def test_chunks_are_whole_lines(tables: Tables, batch_rows: int) -> None:
    tables.append(NOTE, [note(f"n{number * 7 % 100:02d}", "x\ny") for number in range(100)])
    chunks = list(export_jsonl([NOTE], tables.open, batch_rows=batch_rows))
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert max(chunk.count(b"\n") for chunk in chunks) <= batch_rows
    assert b"".join(chunks) == tables.jsonl(NOTE)
    assert len(b"".join(chunks).splitlines()) == 100


def test_the_same_rows_are_the_same_bytes(tables: Tables) -> None:
    """However the rows came to be where they are."""
    tables.append(NOTE, [note("c"), note("a", "old"), note("gone")])
    tables.append(NOTE, [note("b")])
    tables.upsert(NOTE, [note("a", "new"), note("d")])
    tables.delete(NOTE, ["gone"])
    before = tables.jsonl(NOTE)
    assert [line["data"] for line in tables.lines(NOTE)] == [
        note("a", "new"), note("b"), note("c"), note("d"),
    ]  # fmt: skip
    tables.compact(NOTE)
    assert tables.jsonl(NOTE) == before
    assert tables.jsonl(NOTE) == before


def spied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each read of the table asks for."""
    sizes: list[int] = []
    taken = lookup._taken

    def counting(
        table: Table, addresses: pa.Array, columns: Sequence[str], *, is_sparse: bool
    ) -> pa.Table:
        sizes.append(len(addresses))
        return taken(table, addresses, columns, is_sparse=is_sparse)

    monkeypatch.setattr(lookup, "_taken", counting)
    return sizes


def test_wide_rows_come_fewer_at_a_time(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = spied(monkeypatch)
    monkeypatch.setattr(export, "_BATCH_BYTES", 50_000)
    monkeypatch.setattr(export, "_WINDOW_BYTES", 100_000)
    tables.append(NOTE, [note(f"n{number:03d}", "x" * 10_000) for number in range(100)])
    chunks = list(export_jsonl([NOTE], tables.open))
    assert max(map(len, chunks)) < 60_000
    assert max(sizes[1:]) <= 10, "and no more than that are read at once"
    assert len(b"".join(chunks).splitlines()) == sum(sizes) == 100


def test_chunks_are_small(tables: Tables) -> None:
    tables.append(NOTE, [note(f"n{number:03d}", "x" * 4_000) for number in range(500)])
    tables.append(NOTE, [note("n0", "y" * 600_000)])
    chunks = list(export_jsonl([NOTE], tables.open))
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    large = [chunk for chunk in chunks if len(chunk) > 256 * 1024]
    assert [chunk.count(b"\n") for chunk in large] == [1], "a line is never cut"
    assert len(chunks) < 12
    assert [json.loads(line)["data"]["id"] for line in b"".join(chunks).splitlines()] == sorted(
        ["n0", *(f"n{number:03d}" for number in range(500))]
    )


def test_some_rows_are_read_before_the_rest(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = spied(monkeypatch)
    tables.append(NOTE, [note(f"{number:05d}") for number in range(5_000, 0, -1)])
    chunks = export_jsonl([NOTE], tables.open)
    assert next(chunks).endswith(b"\n")
    assert sum(sizes) <= 1024
    assert sum(1 for chunk in chunks for _ in chunk.splitlines()) + 1024 == 5_000


def test_narrow_rows_come_many_at_a_time(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = spied(monkeypatch)
    tables.append(NOTE, [note(f"{number:05d}") for number in range(20_000, 0, -1)])
    chunks = list(export_jsonl([NOTE], tables.open, batch_rows=100))
    assert max(chunk.count(b"\n") for chunk in chunks) == 100
    assert len(sizes) < 10, "else every batch is gathered from all of the table"


def test_large_blobs_come_a_few_at_a_time(pictured: Tables) -> None:
    chunks = list(export_jsonl([SENSOR], pictured.open))
    lengths = [len(chunk) for chunk in chunks]
    assert sorted(lengths)[-2] < 10_000
    assert chunks[lengths.index(max(lengths))].count(b"\n") == 1, "the largest comes alone"
    assert 8 <= len(chunks) <= 20
    assert [json.loads(line)["data"]["id"] for line in b"".join(chunks).splitlines()] == [
        f"s{number:02d}" for number in range(34)
    ]


def test_blobs_are_bytes_or_addresses(tables: Tables) -> None:
    rows = [
        sensor("none"),
        sensor("empty", picture=b""),
        sensor("large", picture=b"line " * 40_000),
        sensor("elsewhere", **{"picture#uri": 'https://example.org/?q="a"'}),
    ]
    tables.append(SENSOR, rows)
    found = {line["data"]["id"]: line["data"]["picture"] for line in tables.lines(SENSOR)}
    assert found.pop("large").startswith("base64:bGluZSBs")
    assert found == {
        "none": None,
        "empty": "base64:",
        "elsewhere": 'https://example.org/?q="a"',
    }


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"value": math.nan}, "value"),
        ({"ratio": math.inf}, "ratio"),
        ({"numbers": [1.0, -math.inf]}, "numbers"),
        ({"place": [0.0, math.nan, 0.0]}, "place"),
    ],
)
def test_what_is_not_finite_stops_its_table(
    full: Tables, values: dict[str, Any], name: str
) -> None:
    full.append(SENSOR, [sensor("good"), sensor("bad", **values)])
    given = []
    with pytest.raises(DataError, match=f"`{name}` of `bad` is not finite") as caught:
        given.extend(export_jsonl(select_tables(CATALOG), full.open))
    assert b"".join(given) == full.jsonl(WATCHES, NOTE), "the tables before are complete"
    assert (caught.value.table, caught.value.property) == ("Sensor", name)
    assert full.parquet(SENSOR)[0].row_count == 4, "Parquet can hold it"


def test_a_date_without_a_four_digit_year_stops_its_table(full: Tables) -> None:
    full.append(SENSOR, [sensor("bad", seen=253402300800000)])
    with pytest.raises(DataError, match="`seen` of `bad` is outside the years 1 to 9999"):
        full.jsonl(SENSOR)


# What is exported reads back


def read_again(given: Any) -> dict[str, bytes]:
    """The rows that a loader reads, as lines by table."""
    sources = open_sources(given)
    problems = Violations()
    found: dict[str, list[pa.Table]] = defaultdict(list)
    for batch in read_batches(sources, CATALOG, places_of(sources), problems):
        found[batch.type.table_key].append(batch.rows)
    assert problems.listed == ()
    types = select_tables(CATALOG)
    return {
        type.table_key: row_lines(type, pa.concat_tables(found[type.table_key])) for type in types
    }


@pytest.fixture
def varied(full: Tables) -> Tables:
    """Also what is easily lost on the way."""
    full.append(
        SENSOR,
        [
            sensor("a", value=-0.0, ratio=1e-45, place=[7.038530691851209e-26, -0.0, 3e38]),
            sensor("b", picture=b"", words=[], times=[], seen=-62135596800000),
            sensor("c", **{"picture#uri": "https://example.org/a?b=%20#c"}),
            sensor('"\\\n\x00\u2028😀', seen=253402300799999, day=dt.date.min, words=[""]),
        ],
    )
    return full


def test_lines_read_back_as_the_same_rows(varied: Tables) -> None:
    expected = {type.table_key: varied.jsonl(type) for type in select_tables(CATALOG)}
    assert read_again([varied.jsonl()]) == expected


def test_files_read_back_as_the_same_rows(varied: Tables) -> None:
    expected = {type.table_key: varied.jsonl(type) for type in select_tables(CATALOG)}
    assert read_again([file.path for file in varied.parquet()]) == expected
