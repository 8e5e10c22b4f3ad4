"""Export of real tables: JSONL lines and Parquet files, their order, their limits."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph_core.errors import ConfigError, DataError, StorageError
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage import lookup
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_delete_keys, stage_upsert
from omnigraph_core.violations import Violations
from omnigraph_core.write import export
from omnigraph_core.write import export_parquet as export_parquet_module
from omnigraph_core.write.export import export_jsonl, select_tables
from omnigraph_core.write.export_parquet import ExportedFile, export_parquet
from omnigraph_core.write.json_rows import row_lines
from omnigraph_core.write.records import read_batches
from omnigraph_core.write.sources import open_sources, places_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType

CATALOG = compile_schema("""
node Sensor {
  name: String @key
  kind: enum(indoor, outdoor)?
  isOn: Bool?
  small: I32?
  large: I64?
  count: U32?
  total: U64?
  ratio: F32?
  value: F64?
  day: Date?
  seen: DateTime?
  picture: Blob?
  place: Vector(3)? @embed("name")
  words: [String]?
  days: [Date]?
  times: [DateTime]?
  numbers: [F32]?
}

node Note {
  text: String?
}

edge Watches: Sensor -> Sensor {
  weight: F64?
  sketch: Blob?
}
""")
SENSOR, NOTE = CATALOG.nodes["Sensor"], CATALOG.nodes["Note"]
WATCHES = CATALOG.edges["Watches"]
MOMENT = 1769854272345

FULL: dict[str, tuple[Any, Any]] = {
    "name": ("full", "full"),
    "kind": ("outdoor", "outdoor"),
    "isOn": (False, False),
    "small": (-(2**31), -(2**31)),
    "large": (2**63 - 1, 2**63 - 1),
    "count": (2**32 - 1, 2**32 - 1),
    "total": (2**64 - 1, 2**64 - 1),
    "ratio": (0.1, 0.1),
    "value": (5e-324, 5e-324),
    "day": (dt.date.max, "9999-12-31"),
    "seen": (MOMENT, "2026-01-31T10:11:12.345Z"),
    "picture": (b"\x00\xff", "base64:AP8="),
    "place": ([0.1, -1.0, 0.0], [0.1, -1.0, 0.0]),
    "words": (["a", "", 'ü"\n'], ["a", "", 'ü"\n']),
    "days": ([dt.date.min], ["0001-01-01"]),
    "times": ([MOMENT, -1], ["2026-01-31T10:11:12.345Z", "1969-12-31T23:59:59.999Z"]),
    "numbers": ([], []),
}


class Tables:
    """The tables of the catalog in a store, by table key."""

    def __init__(self, root: Path) -> None:
        self.root = root
        store = open_store(str(root))
        store.create_root()
        self.by_key = {
            type.table_key: create_table(store, type.table_key.replace(":", "/"), schema)
            for type, schema in ((item, table_schema(item)) for item in select_tables(CATALOG))
        }

    def append(self, type: GraphType, rows: list[dict[str, Any]]) -> None:
        self._set(type, stage_append(self.open(type.table_key), arrow(type, rows)))

    def upsert(self, type: GraphType, rows: list[dict[str, Any]]) -> None:
        self._set(type, stage_upsert(self.open(type.table_key), arrow(type, rows)))

    def delete(self, type: GraphType, ids: list[str]) -> None:
        self._set(type, stage_delete_keys(self.open(type.table_key), pa.array(ids, pa.utf8())))

    def compact(self, type: GraphType) -> None:
        self._set(type, compact(self.open(type.table_key)))

    def open(self, table_key: str) -> Table:
        return self.by_key[table_key]

    def jsonl(self, *types: GraphType, **options: int) -> bytes:
        return b"".join(export_jsonl(types or select_tables(CATALOG), self.open, **options))

    def lines(self, *types: GraphType) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.jsonl(*types).splitlines()]

    def parquet(self, *types: GraphType) -> tuple[ExportedFile, ...]:
        selected = types or select_tables(CATALOG)
        return export_parquet(selected, self.open, self.root / "out")

    def _set(self, type: GraphType, table: Table | None) -> None:
        assert table is not None
        self.by_key[type.table_key] = table


def arrow(type: GraphType, rows: list[dict[str, Any]]) -> pa.Table:
    schema = table_schema(type)
    return pa.table(
        [_column([row.get(field.name) for row in rows], field.type) for field in schema],
        schema=schema,
    )


def _column(values: list[Any], type: pa.DataType) -> pa.Array:
    if type == pa.date64():
        return pa.array(values, pa.int64()).view(type)
    if pa.types.is_list(type) and type.value_type == pa.date64():
        return pa.array(values, pa.list_(pa.int64())).cast(type)
    return pa.array(values, type)


def sensor(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "name": id, **values}


def note(id: str, text: str | None = None) -> dict[str, Any]:
    return {"id": id, "text": text}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


@pytest.fixture
def full(tables: Tables) -> Tables:
    """A sensor with every value, one with none, notes and edges, in several fragments."""
    given = {name: value for name, (value, _) in FULL.items()}
    tables.append(SENSOR, [{"id": "full", **given, "place#origin": 7}])
    tables.append(SENSOR, [sensor("bare")])
    tables.append(NOTE, [note("n2", ""), note("n1")])
    watches = {"src": "full", "dst": "bare"}
    tables.append(WATCHES, [{"id": "e2", **watches, "weight": -0.0}, {"id": "e1", **watches}])
    return tables


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

    def counting(table: Table, addresses: pa.Array, columns: Sequence[str]) -> pa.Table:
        sizes.append(len(addresses))
        return taken(table, addresses, columns)

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


def test_narrow_rows_come_many_at_a_time(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = spied(monkeypatch)
    tables.append(NOTE, [note(f"{number:05d}") for number in range(20_000, 0, -1)])
    chunks = list(export_jsonl([NOTE], tables.open, batch_rows=100))
    assert max(chunk.count(b"\n") for chunk in chunks) == 100
    assert len(sizes) < 10, "else every batch is gathered from all of the table"


@pytest.fixture
def pictured(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """A small blob, many that fit a few at a time, and one that is larger than what is held."""
    monkeypatch.setattr(export, "_BATCH_BYTES", 5_000)
    sizes = [1, *([1_000] * 30), 20_000, 1, 1]
    rows = [
        sensor(f"s{number:02d}", picture=random.Random(number).randbytes(size))
        for number, size in enumerate(sizes)
    ]
    tables.append(SENSOR, rows[::-1])
    return tables


def test_large_blobs_come_a_few_at_a_time(pictured: Tables) -> None:
    chunks = list(export_jsonl([SENSOR], pictured.open))
    lengths = [len(chunk) for chunk in chunks]
    assert sorted(lengths)[-2] < 10_000
    assert chunks[lengths.index(max(lengths))].count(b"\n") == 1, "the largest comes alone"
    assert 8 <= len(chunks) <= 20
    assert [json.loads(line)["data"]["id"] for line in b"".join(chunks).splitlines()] == [
        f"s{number:02d}" for number in range(34)
    ]


def test_row_groups_are_small_where_blobs_are_large(
    pictured: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_parquet_module, "_GROUP_BYTES", 8_000)
    path = pictured.parquet(SENSOR)[0].path
    found = pq.ParquetFile(path)
    groups = [found.read_row_group(at, ["picture"]).nbytes for at in range(found.num_row_groups)]
    assert sorted(groups)[-2] < 15_000
    assert len(groups) >= 4
    assert found.read().num_rows == 34


def test_blobs_have_no_dictionary_and_no_statistics(full: Tables) -> None:
    """For either, a writer holds values that may be very large."""
    group = pq.ParquetFile(full.parquet(SENSOR)[0].path).metadata.row_group(0)
    columns = {item.path_in_schema: item for item in map(group.column, range(group.num_columns))}
    has = {name: (item.has_dictionary_page, item.is_stats_set) for name, item in columns.items()}
    assert has["picture"] == (False, False)
    assert has["name"] == has["words.list.element"] == (True, True)


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


# Parquet


def test_a_file_for_each_table(full: Tables) -> None:
    out = full.root / "out"
    files = full.parquet()
    assert [(file.table_key, file.path, file.row_count) for file in files] == [
        ("edge:Watches", out / "edges" / "Watches.parquet", 2),
        ("node:Note", out / "nodes" / "Note.parquet", 2),
        ("node:Sensor", out / "nodes" / "Sensor.parquet", 2),
    ]
    assert [file.byte_count for file in files] == [file.path.stat().st_size for file in files]
    assert {path for path in out.rglob("*") if path.is_file()} == {file.path for file in files}


def test_columns_are_the_properties(full: Tables) -> None:
    edges, _, sensors = (pq.read_table(file.path) for file in full.parquet())
    assert edges.column_names == ["id", "from", "to", "weight", "sketch", "sketch#uri"]
    names = list(FULL)
    names.insert(names.index("picture") + 1, "picture#uri")
    assert sensors.column_names == ["id", *names]
    assert sensors.schema.field("picture").type == pa.large_binary()
    assert sensors.schema.field("place").type == table_schema(SENSOR).field("place").type
    assert edges["id"].to_pylist() == ["e1", "e2"]
    assert edges["to"].to_pylist() == ["bare", "bare"]


def test_values_are_those_of_the_table(full: Tables) -> None:
    found = pq.read_table(full.parquet(SENSOR)[0].path).to_pylist()
    moment = dt.datetime(2026, 1, 31, 10, 11, 12, 345_000, tzinfo=dt.UTC)
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
    exact = {
        name: given for name, (given, _) in FULL.items() if name not in ("ratio", "place", "times")
    }
    assert found[0] == {"id": "bare", **dict.fromkeys(FULL), "name": "bare", "picture#uri": None}
    assert found[1]["ratio"] == pa.scalar(0.1, pa.float32()).as_py()
    assert found[1]["times"] == [moment, before]
    assert {name: found[1][name] for name in exact} == {**exact, "seen": moment}


def test_an_empty_table_is_a_file_with_columns(tables: Tables) -> None:
    found = pq.read_table(tables.parquet(WATCHES)[0].path)
    assert found.num_rows == 0
    assert found.column_names == ["id", "from", "to", "weight", "sketch", "sketch#uri"]


def test_small_batches_share_a_row_group(tables: Tables) -> None:
    tables.append(NOTE, [note(f"n{number * 7 % 1000:03d}") for number in range(1000)])
    path = tables.parquet(NOTE)[0].path
    assert pq.ParquetFile(path).num_row_groups == 1
    assert pq.read_table(path)["id"].to_pylist() == [f"n{number:03d}" for number in range(1000)]


def test_a_failed_export_leaves_the_file_that_was_there(tables: Tables) -> None:
    tables.append(NOTE, [note("a")])
    path = tables.parquet(NOTE)[0].path
    before = path.read_bytes()
    tables.append(NOTE, [note(f"n{number}", "x" * 1000) for number in range(1000)])
    shutil.rmtree(tables.root / "node" / "Note" / "data")
    with pytest.raises(StorageError):
        tables.parquet(NOTE)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_cannot_be(tables: Tables) -> None:
    (tables.root / "out").write_text("a file")
    with pytest.raises(ConfigError, match=r"cannot write .*Note\.parquet"):
        tables.parquet(NOTE)
