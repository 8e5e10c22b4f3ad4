"""Graphs for the data source: every type of property at its limits, and jobs for any session."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.spark.source import read_snapshot, register

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from omnigraph_core.spark.runner import SparkRunner

SCHEMA: Final = """
node Thing {
  sku: String @key
  note: String?
  is_new: Bool?
  small: I32?
  large: I64?
  count: U32?
  huge: U64?
  ratio: F32?
  exact: F64?
  day: Date?
  moment: DateTime?
  kind: enum(bolt, nut)?
  tags: [String]?
  sizes: [U64]?
  flags: [Bool]?
  days: [Date]?
  moments: [DateTime]?
  shape: Vector(3)?
  photo: Blob?
}
node Place { name: String @key }
edge Lies: Thing -> Place { since: Date? }
"""
SCHEMA_OF_THING: Final = (
    "struct<id:string,sku:string,note:string,is_new:boolean,small:int,large:bigint,count:bigint,"
    "huge:decimal(20,0),ratio:float,exact:double,day:date,moment:timestamp,kind:string,"
    "tags:array<string>,sizes:array<decimal(20,0)>,flags:array<boolean>,days:array<date>,"
    "moments:array<timestamp>,shape:array<float>,photo#uri:string>"
)
ALL_OF_THING: Final = ",".join([*re.findall(r"[<,]([\w#]+):", SCHEMA_OF_THING), "photo"])
"""Every column, also those that come only if they are named."""
THINGS: Final[tuple[dict[str, Any], ...]] = (
    {"sku": "nothing"},
    {
        "sku": "least",
        "note": "",
        "is_new": False,
        "small": -(2**31),
        "large": -(2**63),
        "count": 0,
        "huge": 0,
        "ratio": -3.4028234663852886e38,
        "exact": -1.7976931348623157e308,
        "day": "0001-01-01",
        "moment": "0001-01-01T00:00:00.000Z",
        "kind": "bolt",
        "tags": [],
        "sizes": [],
        "flags": [],
        "days": [],
        "moments": [],
        "shape": [0.0, -0.0, -1.5],
        "photo": "base64:",
    },
    {
        "sku": "most",
        "note": "größer 'n' \"more\" \\ \n 🙂",
        "is_new": True,
        "small": 2**31 - 1,
        "large": 2**63 - 1,
        "count": 2**32 - 1,
        "huge": 2**64 - 1,
        "ratio": 3.4028234663852886e38,
        "exact": 1.7976931348623157e308,
        "day": "9999-12-31",
        "moment": "9999-12-31T23:59:59.999Z",
        "kind": "nut",
        "tags": ["", "a,b", "🙂"],
        "sizes": [0, 2**64 - 1],
        "flags": [True, False],
        "days": ["1969-12-31", "9999-12-31"],
        "moments": ["1969-12-31T23:59:59.999Z"],
        "shape": [1.0, 2.0, 3.0],
        "photo": "base64:AAEC/w==",
    },
    {
        "sku": "zero",
        "small": 0,
        "large": 0,
        "ratio": -0.0,
        "exact": 5e-324,
        "moment": "1970-01-01T00:00:00.001Z",
        "photo": "https://example.org/photo.png",
    },
)


def lines(*records: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


def things(*items: dict[str, Any]) -> bytes:
    return lines(*({"type": "Thing", "data": item} for item in items))


def small_graph(root: Path) -> Omnigraph:
    """All things, two places, and edges between them."""
    og = Omnigraph.init(str(root), SCHEMA)
    places = [{"type": "Place", "data": {"name": name}} for name in ("attic", "cellar")]
    edges = [
        {"edge": "Lies", "from": "least", "to": "attic", "data": {"since": "2020-02-02"}},
        {"edge": "Lies", "from": "most", "to": "cellar", "data": {}},
    ]
    og.load(things(*THINGS))
    og.load(lines(*places, *edges))
    return og


def many_things(root: Path, *, loads: int = 4, each: int = 50) -> Omnigraph:
    """Things in several fragments; every tenth is gone again."""
    og = Omnigraph.init(str(root), SCHEMA)
    for start in range(0, loads * each, each):
        numbers = range(start, start + each)
        og.load(things(*({"sku": f"t{n:04}", "large": n, "small": n % 10} for n in numbers)))
    og.mutate("query q() { delete Thing where small = 3 }")
    return og


def frame(
    session: SparkSession, og: Omnigraph, type: str = "Thing", **options: object
) -> DataFrame:
    register(session)
    given = {name: str(value) for name, value in options.items()}
    return session.read.format("omnigraph").options(graph=og.uri, type=type, **given).load()


def write(frame: DataFrame, og: Omnigraph, type: str = "Thing", **options: object) -> None:
    register(frame.sparkSession)
    given = {name: str(value) for name, value in options.items()}
    writer = frame.write.format("omnigraph").options(graph=og.uri, type=type, **given)
    writer.mode("append").save()


def stored(og: Omnigraph, key: str = "node:Thing") -> dict[str, dict[str, Any]]:
    """The rows of a table by id, as numbers, texts and bytes alone."""
    table = og.table(og.snapshot(), key).read()
    return by_id(table)


def by_id(table: pa.Table) -> dict[str, dict[str, Any]]:
    """Rows by id; times are counts of microseconds, whatever type they have."""
    plain = {name: _plain(table.column(name).combine_chunks()) for name in table.column_names}
    rows = [dict(zip(plain, values, strict=True)) for values in zip(*plain.values(), strict=True)]
    return {row["id"]: row for row in rows}


def _plain(values: pa.Array) -> list[Any]:
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        members = iter(_plain(values.flatten()))
        lengths = values.value_lengths().to_pylist() if pa.types.is_list(kind) else None
        if lengths is None:
            lengths = [kind.list_size if there else None for there in values.is_valid().to_pylist()]
        return [None if n is None else [next(members) for _ in range(n)] for n in lengths]
    if pa.types.is_date64(kind):
        return [None if v is None else v * 1000 for v in values.view(pa.int64()).to_pylist()]
    if pa.types.is_timestamp(kind):
        assert kind == pa.timestamp("us", "UTC")
        return list(values.view(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(values.view(pa.int32()).to_pylist())
    if pa.types.is_decimal(kind):
        return [None if v is None else int(v) for v in values.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if v is None else v.hex() for v in values.to_pylist()]
    return list(values.to_pylist())


# Jobs: functions of a runner, for sessions in other processes.


def read_all(runner: SparkRunner, address: str) -> dict[str, Any]:
    """Every row of every type by a snapshot's views, and the commit they show."""
    session = runner.session
    commit = read_snapshot(session, address, prefix="g_")
    found: dict[str, Any] = {"commit": commit}
    for view in ("node_Thing", "node_Place", "edge_Lies"):
        rows = session.sql(f"SELECT * FROM g_{view}").toArrow()
        found[view] = by_id(rows)
    joined = session.sql(
        "SELECT t.sku, p.name FROM g_edge_Lies e JOIN g_node_Thing t ON t.id = e.src "
        "JOIN g_node_Place p ON p.id = e.dst ORDER BY 1"
    )
    found["joined"] = [list(row) for row in joined.collect()]
    return found


def copy_all(runner: SparkRunner, source: str, target: str) -> dict[str, Any]:
    """All nodes of one graph into another, as frames."""
    session = runner.session
    register(session)
    found: dict[str, Any] = {}
    for type in ("Thing", "Place"):
        reader = session.read.format("omnigraph").options(graph=source, type=type)
        rows = (reader.option("columns", ALL_OF_THING) if type == "Thing" else reader).load()
        sink = rows.write.format("omnigraph").options(graph=target, type=type, actor="ada")
        sink.mode("append").save()
        found[type] = rows.count()
    return found


def refused(runner: SparkRunner, address: str) -> str:
    """What a write that breaks rules says."""
    session = runner.session
    register(session)
    rows = session.createDataFrame(
        [("most", "bolt"), ("new", "screw"), ("new", "nut")], "sku string, kind string"
    ).coalesce(1)
    sink = rows.write.format("omnigraph").options(graph=address, type="Thing")
    try:
        sink.mode("append").save()
    except Exception as error:  # noqa: BLE001 - of a class of Spark, which differs by session
        return str(error)
    return "nothing"
