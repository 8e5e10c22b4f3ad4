"""Whatever a write does, the validator finds what plain loops over the whole graph find.

Rows, committed rows and the kind of write are random. Compared are all violations, by rule, type,
property, value, id and line, and which rows are bad; in memory, in pieces, and over real tables.
Leaving bad rows out ends with a sound graph that lacks no row it could have.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.violations import Rule, Violations
from omnigraph_core.write.batches import Batch, Places
from omnigraph_core.write.constraints import check_rows
from omnigraph_core.write.integrity import check_delta
from omnigraph_core.write.view import CommittedView
from tests.support.committed import Row, batch, delta, memory_view, stored_rows
from tests.support.examples import examples
from tests.support.set_rules import (
    CATALOG,
    TYPES,
    Found,
    Graph,
    Oracle,
    Write,
    drop_repeated,
    is_sound,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.violations import Violation

PLACES = Places()
PART_IDS = st.sampled_from(["p1", "p2", "p3", "p4"])
BIN_IDS = st.sampled_from(["b1", "b2", "b3", "new1", "new2"])
EDGE_IDS = st.sampled_from(["e1", "e2", "e3", "e4", "e5", "e6", "new1", "new2", "new3"])
ENDS = {"Part": st.sampled_from(["p1", "p2", "p3", "p4", "p9"])}
ENDS["Bin"] = st.sampled_from(["b1", "b2", "b3", "b9"])


def rows_of(name: str) -> st.SearchStrategy[Row]:
    """A row of a type; ids and values meet often."""
    if name == "Part":
        return st.fixed_dictionaries(
            {
                "id": PART_IDS,
                "serial": st.sampled_from([None, None, "s", "t", ""]),
                "maker": st.sampled_from([None, "m", "n"]),
                "size": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
            }
        ).map(lambda row: {**row, "code": row["id"]})
    if name == "Bin":
        return st.fixed_dictionaries({"id": BIN_IDS})
    edge = CATALOG.edges[name]
    columns = {"id": EDGE_IDS, "src": ENDS[edge.source], "dst": ENDS[edge.target]}
    if name == "Fits":
        columns["grade"] = st.sampled_from([None, 1, 2, 3])
    return st.fixed_dictionaries(columns)


@st.composite
def committed_graphs(draw: st.DrawFn) -> Graph:
    """A graph without dangling edges and repeated tuples; counts of edges may be any."""
    graph: Graph = {}
    for name in ("Part", "Bin"):
        graph[name] = unique_by_id(draw(st.lists(rows_of(name), max_size=4)))
    graph["Part"] = drop_repeated(graph["Part"])
    for name, edge in CATALOG.edges.items():
        drawn = unique_by_id(draw(st.lists(rows_of(name), max_size=6)))
        whole = {
            id: row
            for id, row in drawn.items()
            if row["src"] in graph[edge.source] and row["dst"] in graph[edge.target]
        }
        graph[name] = drop_repeated(whole, name)
    return graph


def unique_by_id(rows: Iterable[Row]) -> dict[str, Row]:
    return {row["id"]: row for row in rows if not row["id"].startswith("new")}


@st.composite
def writes(draw: st.DrawFn, graph: Graph) -> Write:
    write: Write = {}
    for name in draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True, min_size=1)):
        mode = draw(st.sampled_from(["merge", "merge", "strict", "overwrite"]))
        rows = no_fresh_twice(draw(st.lists(rows_of(name), max_size=7)))
        given = {row["id"] for row in rows}
        free = sorted(set(graph[name]) - given)
        deleted = draw(st.lists(st.sampled_from(free), unique=True)) if free else []
        write[name] = {"rows": rows, "deleted": [] if mode == "overwrite" else deleted}
        write[name] |= {"is_strict": mode == "strict", "is_overwrite": mode == "overwrite"}
        is_claiming = name in CATALOG.nodes and draw(st.booleans())
        write[name]["claimed"] = ["p9" if name == "Part" else "b9"] if is_claiming else []
    return write


def no_fresh_twice(rows: list[Row]) -> list[Row]:
    seen: set[str] = set()
    kept = []
    for row in rows:
        if not (row["id"].startswith("new") and row["id"] in seen):
            kept.append(row)
        seen.add(row["id"])
    return kept


def outcome(listed: Iterable[Violation]) -> Counter[Found]:
    return Counter(
        (str(v.rule), v.type_name, v.property, repr(v.value), v.id, v.line) for v in listed
    )


def compare(graph: Graph, write: Write, view: Any, chunk_rows: int | None) -> None:
    violations, bad = check(write, view, chunk_rows)
    oracle = Oracle(graph, write)
    assert outcome(violations.listed) == Counter(oracle.found)
    assert violations.total == len(oracle.found)
    assert bad == {name: rows for name, rows in oracle.bad.items() if rows}
    check_counts(violations, oracle)
    assert (violations.total == 0) == is_sound(graph, write)


def check(
    write: Write, view: Any, chunk_rows: int | None = None
) -> tuple[Violations, dict[str, set[int]]]:
    """What the validator finds, and the numbers of bad rows by type."""
    deltas = {
        TYPES[name].table_key: delta(TYPES[name], **part, chunk_rows=chunk_rows)
        for name, part in write.items()
    }
    violations = Violations(limit=10_000)
    bad = check_delta(deltas, CATALOG, view, PLACES, violations)
    masks = {key.split(":")[1]: mask.to_pylist() for key, mask in bad.items()}
    return violations, {
        name: {n for n, is_bad in enumerate(mask) if is_bad} for name, mask in masks.items()
    }


def check_counts(violations: Violations, oracle: Oracle) -> None:
    """The number of edges in the message is the number there would be."""
    for violation in violations.listed:
        if violation.rule is Rule.CARDINALITY:
            stated = re.search(r"has (\d+),", violation.message)
            assert stated is not None
            assert int(stated[1]) == oracle.totals[str(violation.type_name), violation.value]


@settings(max_examples=examples(250), deadline=None)
@given(data=st.data(), chunk_rows=st.sampled_from([None, 1, 3]))
def test_set_rules_in_memory(data: st.DataObject, chunk_rows: int | None) -> None:
    graph = data.draw(committed_graphs())
    write = data.draw(writes(graph))
    rows = {name: list(items.values()) for name, items in graph.items()}
    compare(graph, write, memory_view(CATALOG, rows), chunk_rows)


@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_set_rules_over_real_tables(data: st.DataObject) -> None:
    graph = data.draw(committed_graphs())
    write = data.draw(writes(graph))
    with tempfile.TemporaryDirectory() as root:
        store = open_store(root)
        store.create_root()

        def open_table(table_key: str) -> Any:
            name = table_key.split(":")[1]
            table = create_table(store, name, table_schema(TYPES[name]))
            rows = stored_rows(TYPES[name], graph[name].values())
            return stage_append(table, rows) or table

        tables = {type.table_key: open_table(type.table_key) for type in TYPES.values()}
        compare(graph, write, CommittedView(tables.__getitem__), None)


@st.composite
def additions(draw: st.DrawFn, graph: Graph) -> dict[str, list[Row]]:
    """Rows of types without a minimum that replace nothing, each with its own id."""
    added: dict[str, list[Row]] = {}
    for name in ("Part", "Fits", "Near"):
        rows = {row["id"]: row for row in draw(st.lists(rows_of(name), max_size=7))}
        added[name] = [row for id, row in rows.items() if id not in graph[name]]
    return added


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_no_good_row_is_left_out(data: st.DataObject) -> None:
    graph = data.draw(committed_graphs())
    added = data.draw(additions(graph))
    view = memory_view(CATALOG, {name: list(rows.values()) for name, rows in graph.items()})

    def checked(rows: dict[str, list[Row]]) -> dict[str, set[int]]:
        return check({name: {"rows": items} for name, items in rows.items()}, view)[1]

    left = added
    while bad := checked(left):
        left = {
            name: [row for n, row in enumerate(rows) if n not in bad.get(name, ())]
            for name, rows in left.items()
        }
    for name, rows in added.items():
        for row in rows:
            if row not in left[name]:
                assert checked({**left, name: [*left[name], row]})


ROW_SCHEMA = """
node Item {
    code: String @key
    name: String
    kind: enum(raw, made)?
    labels: [String]?
    sizes: [F64]
    weight: F32?
    length: F64?
    stock: I64
    place: Vector(2)?
    picture: Blob
    note: String?
    sense: Vector(2) @embed(note)
    @range(length, -1.5..2)
    @range(stock, 0..9007199254740993)
    @check(name, "a|^b")
}
"""
ITEM = compile_schema(ROW_SCHEMA).nodes["Item"]
NUMBERS = st.sampled_from([0.0, -1.5, 2.0, 2.5, math.nan, math.inf, -math.inf])
MEMBERS = st.lists(NUMBERS | st.none(), max_size=3)
VECTORS = st.none() | st.lists(NUMBERS | st.none(), min_size=2, max_size=2)
ITEMS = st.fixed_dictionaries(
    {
        "id": st.just("i"),
        "code": st.just("i"),
        "name": st.sampled_from([None, "a", "xa", "b", "xb", ""]),
        "kind": st.sampled_from([None, "raw", "made", "Raw"]),
        "labels": st.none() | st.lists(st.sampled_from(["a", None]), max_size=3),
        "sizes": st.none() | MEMBERS,
        "weight": st.none() | NUMBERS,
        "length": st.none() | NUMBERS,
        "stock": st.sampled_from([None, -1, 0, 2**53 + 1, 2**53 + 2]),
        "place": VECTORS,
        "picture": st.sampled_from([None, b"", b"x"]),
        "picture#uri": st.sampled_from([None, "s3://bin/x"]),
        "note": st.sampled_from([None, "", " ", "text"]),
        "sense": VECTORS,
    }
)


def broken(row: Row) -> set[tuple[Rule, str]]:
    """The rules a row breaks, each with the property it is about."""
    found = {(Rule.REQUIRED, name) for name in ("name", "sizes", "stock") if row[name] is None}
    if row["picture"] is None and row["picture#uri"] is None:
        found.add((Rule.REQUIRED, "picture"))
    if row["sense"] is None and not (row["note"] or "").strip():
        found.add((Rule.REQUIRED, "sense"))
    if row["kind"] not in (None, "raw", "made"):
        found.add((Rule.ENUM, "kind"))
    for name in ("labels", "sizes", "place", "sense"):
        if any(is_wrong_member(member) for member in row[name] or ()):
            found.add((Rule.VALUE, name))
    if row["weight"] is not None and not math.isfinite(row["weight"]):
        found.add((Rule.VALUE, "weight"))
    if row["length"] is not None and math.isinf(row["length"]):
        found.add((Rule.VALUE, "length"))
    elif row["length"] is not None and not -1.5 <= row["length"] <= 2:
        found.add((Rule.RANGE, "length"))
    if row["stock"] is not None and not 0 <= row["stock"] <= 2**53 + 1:
        found.add((Rule.RANGE, "stock"))
    if row["name"] is not None and re.search("a|^b", row["name"]) is None:
        found.add((Rule.CHECK, "name"))
    return found


def is_wrong_member(member: object) -> bool:
    return member is None or (isinstance(member, float) and not math.isfinite(member))


@settings(max_examples=examples(150), deadline=None)
@given(rows=st.lists(ITEMS, max_size=6), cut=st.integers(0, 6))
def test_row_rules(rows: list[Row], cut: int) -> None:
    whole = batch(ITEM, rows).rows
    pieces = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    violations = Violations(limit=10_000)
    good = check_rows(Batch(ITEM, pieces), PLACES, violations)
    expected = [broken(row) for row in rows]
    found: list[set[tuple[Rule, str]]] = [set() for _ in rows]
    for violation in violations.listed:
        assert violation.line is not None
        found[violation.line - 1].add((violation.rule, str(violation.property)))
    assert found == expected
    marked = [True] * len(rows) if good is None else good.to_pylist()
    assert marked == [not rules for rules in expected]
