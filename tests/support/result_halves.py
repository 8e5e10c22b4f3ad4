"""Items of every type, and random queries over them whose matches are plain and results are not."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.exec.collect import run_read
from omnigraph_core.exec.context import Run
from omnigraph_core.exec.graph_data import GraphData
from omnigraph_core.exec.guard import Guard
from omnigraph_core.exec.queries import plan_read
from omnigraph_core.exec.query_vectors import QueryVectors
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.values import Values
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.values import to_json
from tests.support import oracle
from tests.support.loading import edge, lines
from tests.support.oracle_graph import Edge, Node, OracleGraph

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hypothesis.strategies import DrawFn

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.values import Value

SCHEMA = """
node Item {
  sku: String @key
  name: String?
  title: String
  kind: enum(bolt, nut)?
  small: I32?
  whole: I64
  big: U64?
  short: F32?
  real: F64?
  day: Date?
  moment: DateTime?
  isNew: Bool?
  tags: [String]?
  days: [Date]?
  spot: Vector(2)?
}

edge Needs: Item -> Item {
  amount: I64?
  note: String?
}
"""
ORDERED = [
    "id",
    "sku",
    "name",
    "title",
    "kind",
    "small",
    "whole",
    "big",
    "short",
    "real",
    "day",
    "moment",
    "isNew",
]
LISTED = ["tags", "days", "spot"]
NUMBERS = ["small", "whole", "big", "short", "real"]
COMPARED = [*NUMBERS, "id", "name", "title", "kind", "day", "moment"]
NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=dt.UTC)
COUNT = 23


@cache
def catalog() -> Catalog:
    return compile_schema(SCHEMA)


def _item(n: int) -> Node:
    """Values repeat at different paces, so that every pair of columns has equal and other pairs."""
    sku = f"i{(n * 7) % COUNT:02}"
    values: dict[str, Value] = {
        "sku": sku,
        "name": (None, "b", "a", "é", "z")[n % 5],
        "title": ("x", "y", "yy")[n % 3],
        "kind": (None, "bolt", "nut")[n // 2 % 3],
        "small": (None, 3, -2, 0)[n % 4],
        "whole": (2**55 + 1, -(2**55), 7, 7, 0)[n % 5],
        "big": (None, 2**63 + 5, 1, 2**63 + 5, 0)[n // 3 % 5],
        "short": (None, 0.5, -1.25)[n % 3],
        "real": (0.0, None, -0.0, 2.5, -7.25)[n % 5],
        "day": (None, dt.date(2020, 2, 29), dt.date(1960, 1, 1))[n // 4 % 3],
        "moment": (NOON, None, NOON + dt.timedelta(milliseconds=1))[n // 5 % 3],
        "isNew": (None, True, False, True)[n % 4],
        "tags": (None, (), ("a",), ("a", "b"), ("b",))[n % 5],
        "days": (None, (dt.date(2020, 1, 1),), (dt.date(1960, 1, 1), dt.date(2020, 1, 1)))[n % 3],
        "spot": (None, (1.0, 0.0), (0.0, 1.0), (0.5, 0.5))[n % 4],
    }
    return Node("Item", sku, values)


def _needs(n: int) -> Edge:
    src, dst = f"i{n * 5 % COUNT:02}", f"i{(n * n + 3) % COUNT:02}"
    values: dict[str, Value] = {"amount": (None, 1, 2, -4)[n % 4], "note": ("p", None, "q")[n % 3]}
    return Edge("Needs", f"e{n:02}", src, dst, values)


@cache
def items() -> OracleGraph:
    return OracleGraph(catalog(), map(_item, range(COUNT)), map(_needs, range(40)))


def new_items(root: Path) -> Omnigraph:
    """The same graph, stored."""
    graph = Omnigraph.init(str(root / "graph"), SCHEMA, actor="tester")
    nodes = [{"type": "Item", "data": _plain(n.properties)} for n in items().nodes["Item"].values()]
    edges = [
        edge(e.type, e.src, e.dst, e.id, **_plain(e.properties)) for e in items().edges["Needs"]
    ]
    graph.load(lines(*nodes, *edges))
    return graph


def _plain(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: to_json(value) for name, value in values.items() if value is not None}


# Running


@dataclass
class Items:
    """The stored graph, queried as far as rows and results go."""

    graph: Omnigraph
    capacity: int
    data: GraphData = field(init=False)

    def __post_init__(self) -> None:
        snapshot = self.graph.snapshot()
        cache = ByteCache(self.capacity)
        self.data = GraphData(self.graph._context, snapshot, catalog(), cache, None)

    def run(self, text: str, budget: int = 2**30, **params: Value) -> Run:
        read = plan_read(compile_one(text, catalog(), None), catalog())
        values = Values(oracle.NOW, params)
        vectors = QueryVectors.of(read.plan.ir, values, catalog(), self.graph._embedder)
        return Run(read, self.data, values, Guard(budget=budget), vectors)

    def table(self, text: str, **params: Value) -> pa.Table:
        run = self.run(text, **params)
        return run_read(run, run.plan)

    def rows(self, text: str, **params: Value) -> list[dict[str, Any]]:
        return shown(self.table(text, **params))


def expected(text: str, **params: Value) -> list[dict[str, Any]]:
    compiled = compile_one(text, catalog(), None).ir
    assert isinstance(compiled, QueryIR)
    return oracle.run(compiled, items(), params)


def shown(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as the oracle has them."""
    columns = {name: _cells(table.column(name).combine_chunks()) for name in table.column_names}
    cells = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in cells]


def _cells(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    if isinstance(array, pa.ChunkedArray):
        return list(itertools.chain.from_iterable(map(_cells, array.chunks)))
    if pa.types.is_struct(array.type):
        parts = {f.name: _cells(array.field(f.name)) for f in array.type}
        whole = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
        valid = array.is_valid().to_pylist()
        return [found if is_valid else None for found, is_valid in zip(whole, valid, strict=True)]
    if pa.types.is_date64(array.type):
        return array.view(pa.timestamp("ms", "UTC")).to_pylist()
    return [tuple(v) if isinstance(v, list) else v for v in array.to_pylist()]


# Queries

MATCHES = {
    "$a: Item": ("a",),
    "$a: Item  $a.small >= 0": ("a",),
    "$a: Item  $a needs $b": ("a", "b"),
    "$a: Item  $a $w: needs $b": ("a", "b", "w"),
    "$a: Item  $a $w: needs $_": ("a", "w"),
    "$a: Item  $a needs $b  $b needs $c": ("a", "b", "c"),
    "$a: Item  optional { $a $w: needs $b  $b.isNew = true }": ("a", "b", "w"),
    "$a: Item  $a.small = 99": ("a",),
    "$a: Item  $a.small = 99  $a needs $b": ("a", "b"),
}


@st.composite
def queries(draw: DrawFn) -> str:
    """A query with any result: rows, groups, different rows, ordered or not, cut or not."""
    match = draw(st.sampled_from(sorted(MATCHES)))
    variables = MATCHES[match]
    is_grouped, is_distinct = draw(st.booleans()), draw(st.booleans())
    values = draw(st.lists(_columns(variables), max_size=3, unique=True))
    if is_grouped:
        values += draw(st.lists(_aggregates(variables), min_size=1, max_size=3))
    columns = [f"{value} as c{n}" for n, value in enumerate(values or ["1"])]
    keys = draw(_keys(variables, values, is_grouped=is_grouped, is_distinct=is_distinct))
    having = draw(_having(values)) if is_grouped else ""
    return "\n".join(
        (
            f"query q($limit: I64, $offset: I64) {{ match {{ {match} }}",
            f"return {'distinct ' if is_distinct else ''}{{ {', '.join(columns)} }}",
            having,
            f"order {{ {', '.join(keys)} }}" if keys else "",
            draw(st.sampled_from(["", "limit 5", "limit $limit", "limit 3 offset $offset"])),
            "}",
        )
    )


def _properties(variables: tuple[str, ...], names: list[str]) -> st.SearchStrategy[str]:
    found = [f"${v}.{name}" for v in variables if v != "w" for name in names]
    if "w" in variables:
        found += ["$w.amount", "$w.note", "$w.id"]
    return st.sampled_from(found)


def _columns(variables: tuple[str, ...]) -> st.SearchStrategy[str]:
    nodes = st.sampled_from([f"${v}" for v in variables if v != "w"])
    given = st.sampled_from(['"text"', "7", "$limit", "now()"])
    return st.one_of(_properties(variables, ORDERED), _properties(variables, LISTED), nodes, given)


def _aggregates(variables: tuple[str, ...]) -> st.SearchStrategy[str]:
    numbers = [f"${v}.{name}" for v in variables if v != "w" for name in NUMBERS]
    summed = [name for name in numbers if not name.endswith(".big")]  # that exceeds U64
    compared = [f"${v}.{name}" for v in variables if v != "w" for name in COMPARED]
    return st.one_of(
        _columns(variables).map("count({})".format),
        _columns(variables).map("count(distinct {})".format),
        st.sampled_from(summed).map("sum({})".format),
        st.sampled_from(numbers).map("avg({})".format),
        st.builds("{}({})".format, st.sampled_from(["min", "max"]), st.sampled_from(compared)),
        st.sampled_from(["sum(2)", "avg($limit)", "min(3)", 'max("m")']),
    )


def _keys(
    variables: tuple[str, ...], values: list[str], *, is_grouped: bool, is_distinct: bool
) -> st.SearchStrategy[list[str]]:
    aliases = [f"c{n}" for n, value in enumerate(values) if _is_ordered(value)]
    options = [st.sampled_from(aliases)] if aliases else []
    if is_grouped and not is_distinct:
        options.append(_aggregates(variables))
    if not is_grouped and not is_distinct:
        options.append(_properties(variables, ORDERED))
    if not options:
        return st.just([])
    direction = st.sampled_from(["", " asc", " desc"])
    return st.lists(st.builds("{}{}".format, st.one_of(options), direction), max_size=3)


def _is_ordered(value: str) -> bool:
    variable, _, name = value.partition(".")
    if not value.startswith("$") or value == "$limit":
        return True
    return name in ORDERED or variable == "$w"


def _having(values: list[str]) -> st.SearchStrategy[str]:
    counts = [f"c{n}" for n, value in enumerate(values) if value.startswith("count")]
    options = [
        "",
        "",
        "having { count($a) > 2 }",
        "having { sum($a.small) < 4 or max($a.day) is null }",
    ]
    options += [f"having {{ {name} <= 3 }}" for name in counts]
    return st.sampled_from(options)
