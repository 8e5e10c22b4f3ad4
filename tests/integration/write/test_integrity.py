"""Set rules against real tables: lookups of every type, few and many, in versions with a past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.violations import Rule, Violations
from omnigraph_core.write.batches import Places
from omnigraph_core.write.integrity import check_delta
from omnigraph_core.write.view import CommittedView
from tests.support.committed import Row, delta, graph_type, stored_rows
from tests.support.parts import present
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.integrity import TableDelta

SCHEMA = """
node Part {
    code: String @key
    text: String? @unique
    flag: Bool? @unique
    small: I32? @unique
    large: I64? @unique
    count: U32? @unique
    serial: U64? @unique
    single: F32? @unique
    double: F64? @unique
    day: Date? @unique
    moment: DateTime? @unique
}
node Bin { label: String? }
edge Fits: Part -> Part { grade: I32?
    @unique(src, dst)
}
edge Holds: Bin -> Part @card(1..2)
"""
CATALOG = compile_schema(SCHEMA)
ODD_IDS = ["it's", 'say "x"', "back\\slash", "`tick`", "ünï→", "%_", "", "a\nb"]
MANY = 5_000
"""More than are looked up one by one."""


class Tables:
    """The committed tables of a graph, one per type."""

    def __init__(self, root: Path) -> None:
        store = open_store(str(root))
        store.create_root()
        types = [*CATALOG.nodes.values(), *CATALOG.edges.values()]
        self._tables = {t.table_key: create_table(store, t.name, table_schema(t)) for t in types}

    def append(self, name: str, rows: Sequence[Row]) -> None:
        type = graph_type(CATALOG, name)
        self.put(present(stage_append(self[type.table_key], stored_rows(type, rows))), name)

    def put(self, table: Table, name: str) -> None:
        self._tables[graph_type(CATALOG, name).table_key] = table

    def __getitem__(self, table_key: str) -> Table:
        return self._tables[table_key]

    def view(self) -> CommittedView:
        return CommittedView(self.__getitem__)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def check(tables: Tables, *deltas: TableDelta) -> tuple[Violations, dict[str, list[int]]]:
    violations = Violations()
    by_key = {item.type.table_key: item for item in deltas}
    masks = check_delta(by_key, CATALOG, tables.view(), Places(), violations)
    bad = {key: [n for n, is_bad in enumerate(m.to_pylist()) if is_bad] for key, m in masks.items()}
    return violations, bad


def of(name: str, rows: Sequence[Row] = (), **options: Any) -> TableDelta:
    return delta(graph_type(CATALOG, name), rows, **options)


def part(code: str, **values: Any) -> Row:
    return {"id": code, "code": code, **values}


def edge(id: str, src: str, dst: str) -> Row:
    return {"id": id, "src": src, "dst": dst}


def parts(count: int) -> list[Row]:
    return [part(f"p{n}", text=f"t{n}", large=n) for n in range(count)]


def test_a_view_finds_what_is_committed(tables: Tables) -> None:
    tables.append("Part", parts(MANY))
    view = tables.view()
    for ids in (["p7"], ["x"], ["p1", "x", "p1"], [f"p{n}" for n in range(0, 2 * MANY, 2)]):
        expected = [id != "x" and int(id[1:]) < MANY for id in ids]
        assert view.present("node:Part", pa.array(ids)).to_pylist() == expected
        pieces = pa.chunked_array([ids[:1], ids[1:]], pa.utf8())
        assert view.present("node:Part", pieces).to_pylist() == expected


def test_a_view_remembers_which_tables_were_looked_at(tables: Tables) -> None:
    view = tables.view()
    assert view.present("node:Bin", pa.array([], pa.utf8())).to_pylist() == []
    assert view.read == frozenset()
    view.present("node:Part", pa.array(["p1"]))
    view.rows("edge:Fits", "src", pa.array(["p1"]), ("id",))
    assert view.read == {"node:Part", "edge:Fits"}
    assert view.scan("node:Bin", ("id",)).num_rows == view.count("edge:Holds") == 0
    assert view.read == {"node:Part", "node:Bin", "edge:Fits", "edge:Holds"}


@pytest.mark.parametrize(
    ("column", "held", "free"),
    [
        ("text", 'it\'s `x` \\ "y"', "it's"),
        ("flag", True, False),
        ("small", -(2**31), 0),
        ("large", 2**53 + 1, 2**53),
        ("count", 2**32 - 1, 0),
        ("serial", 2**64 - 1, 2**64 - 2),
        ("single", -0.0, 0.5),
        ("double", 0.1, 0.2),
        ("day", 19_000, 19_001),
        ("moment", 1_700_000_000_123, 1_700_000_000_124),
    ],
)
def test_values_of_every_type_are_unique(
    tables: Tables, column: str, held: object, free: object
) -> None:
    tables.append("Part", [part("a", **{column: held}), part("n")])
    zero_free = 0.0 if column == "single" else held
    rows = [part("b", **{column: zero_free}), part("c", **{column: free}), part("d")]
    violations, bad = check(tables, of("Part", rows))
    assert bad == {"node:Part": [0]}
    (violation,) = violations.listed
    assert violation.rule is Rule.UNIQUE
    assert violation.message.startswith(f"@unique violation on Part.{column}: ")
    assert violation.message.endswith(" is held by 'a'")
    assert check(tables, of("Part", [part("a", **{column: held})]))[1] == {}


def test_ids_may_contain_anything(tables: Tables) -> None:
    tables.append("Part", [part(id) for id in ODD_IDS])
    edges = [edge(f"new{n}", id, id) for n, id in enumerate(ODD_IDS)]
    assert check(tables, of("Fits", edges))[1] == {}
    strict = of("Part", [part(id) for id in [*ODD_IDS, "free"]], is_strict=True)
    assert check(tables, strict)[1] == {"node:Part": list(range(len(ODD_IDS)))}


def test_many_rows_at_once(tables: Tables) -> None:
    tables.append("Part", parts(MANY))
    tables.append("Bin", [{"id": f"b{n}"} for n in range(MANY)])
    tables.append("Holds", [edge(f"h{n}", f"b{n}", f"p{n}") for n in range(MANY)])
    rows = [part(f"q{n}", text=f"t{n + MANY - 1}") for n in range(MANY)]
    holds = [edge(f"new{n}", f"b{n % MANY}", f"p{n // 2}") for n in range(MANY + 1)]
    violations, bad = check(tables, of("Part", rows), of("Holds", holds, chunk_rows=999))
    assert bad == {"node:Part": [0], "edge:Holds": [MANY]}
    assert [v.message for v in violations.listed] == [
        f"@unique violation on Part.text: 't{MANY - 1}' is held by 'p{MANY - 1}'",
        "@card violation on edge Holds: source 'b0' has 3, allowed 1..2",
    ]


def test_only_the_rows_of_the_version_count(tables: Tables) -> None:
    tables.append("Part", parts(10))
    type = graph_type(CATALOG, "Part")
    moved = stored_rows(type, [part("p1", text="elsewhere")])
    upserted = present(stage_upsert(tables["node:Part"], moved))
    tables.put(present(stage_delete_keys(upserted, pa.array(["p2"]))), "Part")
    rows = [part("a", text="t1"), part("b", text="t2"), part("c", text="elsewhere")]
    assert check(tables, of("Part", rows))[1] == {"node:Part": [2]}
    ends = [edge("new1", "p1", "p3"), edge("new2", "p1", "p2")]
    assert check(tables, of("Fits", ends))[1] == {"edge:Fits": [1]}


def test_indexes_change_nothing(tables: Tables) -> None:
    tables.append("Part", parts(200))
    tables.append("Fits", [edge(f"f{n}", f"p{n}", f"p{n + 1}") for n in range(100)])
    wanted = of("Part", deleted=["p50"]), of("Fits", [edge("new1", "p1", "p2")])
    before = check(tables, *wanted)
    for name, columns in {"Part": ("id", "text"), "Fits": ("id", "src", "dst")}.items():
        for column in columns:
            key = graph_type(CATALOG, name).table_key
            request = IndexRequest(column, SegmentKind.BTREE, f"{column}_btree")
            tables.put(present(stage_index(tables[key], request)), name)
    after = check(tables, *wanted)
    assert after[0].listed == before[0].listed
    assert after[1] == before[1] == {"edge:Fits": [0]}
    assert [v.rule for v in after[0].listed] == [Rule.ORPHAN, Rule.ORPHAN, Rule.UNIQUE]


def test_an_overwrite_of_few_nodes_below_many_edges(tables: Tables) -> None:
    tables.append("Part", parts(3))
    tables.append("Fits", [edge(f"f{n}", f"p{n % 2}", "p2") for n in range(20)])
    kept = of("Part", [part("p1"), part("p2")], is_overwrite=True)
    violations, bad = check(tables, kept)
    assert bad == {}
    assert {(v.rule, v.property, v.value) for v in violations.listed} == {
        (Rule.ORPHAN, "src", "p0")
    }
    assert violations.total == 10


def test_refused_edges_take_nothing_from_others(tables: Tables) -> None:
    tables.append("Part", parts(5))
    tables.append("Bin", [{"id": "b1"}, {"id": "b2"}])
    tables.append("Fits", [edge("f1", "p0", "p1")])
    tables.append("Holds", [edge("h1", "b1", "p1"), edge("h2", "b2", "p1")])
    fits = [edge("f1", "p0", "x"), edge("new1", "p0", "x"), edge("new2", "p0", "p1")]
    holds = [edge("h1", "b1", "x"), edge("new1", "b1", "x"), edge("h2", "b1", "p3")]
    violations, bad = check(tables, of("Fits", fits), of("Holds", holds))
    assert bad == {"edge:Fits": [0, 1], "edge:Holds": [0, 1]}
    assert violations.counts == {Rule.ENDPOINT: 4, Rule.CARDINALITY: 1}
    (short,) = [v for v in violations.listed if v.rule is Rule.CARDINALITY]
    assert short.message.endswith("source 'b2' has 0, allowed 1..2")
    violations, bad = check(tables, of("Fits", fits[2:]))
    assert bad == {"edge:Fits": [0]}
    assert violations.listed[0].message.endswith("is held by 'f1'")
