"""Ids: from keys, as given, or fresh."""

from __future__ import annotations

import datetime as dt
import threading

import pyarrow as pa

from omnigraph_core.ids import is_ulid, key_id
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.values import canonical_text
from omnigraph_core.violations import Rule, Violations
from omnigraph_core.write.batches import FRESH, Batch, Places, batch_schema
from omnigraph_core.write.identity import assign_ids, canonical_texts, fresh_ids
from tests.support.cases import each

CATALOG = compile_schema("""
node Part { sku: String @key }
node Slot { row: I32  shelf: String  @key(row, shelf) }
node Note { text: String }
edge Holds: Part -> Part
""")


def batch(name: str, **columns: list[object]) -> Batch:
    type = CATALOG.nodes.get(name) or CATALOG.edges[name]
    schema = batch_schema(type)
    count = len(next(iter(columns.values())))
    columns = {"#source": [0] * count, "#line": list(range(1, count + 1)), **columns}
    arrays = [pa.array(columns.get(f.name, [None] * count), f.type) for f in schema]
    return Batch(type, pa.table(arrays, schema=schema))


def assigned(given: Batch) -> tuple[pa.Table, Violations]:
    violations = Violations()
    return assign_ids(given, Places(("in.jsonl",)), violations).rows, violations


def test_a_key_is_the_id() -> None:
    rows, violations = assigned(batch("Part", sku=["a", None, "c"], id=[None, None, "c"]))
    assert rows["id"].to_pylist() == ["a", None, "c"]
    assert rows[FRESH].to_pylist() == [False, False, False]
    assert not violations.total


def test_an_id_that_contradicts_the_key_is_reported() -> None:
    rows, violations = assigned(batch("Part", sku=["a", "b"], id=["a", "x"]))
    (found,) = violations.listed
    assert found.rule is Rule.ID_MISMATCH
    assert (found.line, found.type_name, found.property, found.id) == (2, "Part", "sku", "x")
    assert "'x'" in found.message
    assert "'b'" in found.message
    assert rows[FRESH].to_pylist() == [False, None]


@each("shelf", ["top", 'a "b"', "a,b", "back\\slash", "tab\t", "ümlaut"])
def test_a_composite_key_is_a_json_array(shelf: str) -> None:
    rows, _ = assigned(batch("Slot", row=[7, None], shelf=[shelf, "x"]))
    assert rows["id"].to_pylist() == [key_id(["7", shelf]), None]


def test_what_has_no_key_is_given_one_or_keeps_its_own() -> None:
    rows, violations = assigned(batch("Note", text=["a", "b", "c"], id=[None, "mine", None]))
    first, second, third = rows["id"].to_pylist()
    assert second == "mine"
    assert is_ulid(first)
    assert is_ulid(third)
    assert first < third
    assert rows[FRESH].to_pylist() == [True, False, True]
    assert not violations.total


def test_edges_get_fresh_ids() -> None:
    rows, _ = assigned(batch("Holds", src=["a"], dst=["b"]))
    assert is_ulid(rows["id"][0].as_py())


@each(
    ("values", "type"),
    [
        (["a", "", "ü"], pa.string()),
        ([True, False], pa.bool_()),
        ([-(2**63), 2**63 - 1], pa.int64()),
        ([2**64 - 1], pa.uint64()),
        ([dt.date(1969, 12, 31), dt.date(9999, 12, 31)], pa.date32()),
        ([0.0, -0.0, 0.1, 1e22, 1e-7, 5e-324], pa.float64()),
    ],
)
def test_texts_are_canonical(values: list[object], type: pa.DataType) -> None:
    expected = [canonical_text(value) for value in values]  # type: ignore[arg-type]
    assert canonical_texts(pa.array(values, type)).to_pylist() == expected


def test_texts_of_narrow_floats_and_moments() -> None:
    assert canonical_texts(pa.array([0.1, 16777216.0], pa.float32())).to_pylist() == [
        "0.1",
        "16777216",
    ]
    assert canonical_texts(pa.array([float("nan"), None])).to_pylist() == [None, None]
    assert canonical_texts(pa.array([1500], pa.int64()).view(pa.date64())).to_pylist() == ["1500"]


def test_fresh_ids_ascend_over_calls_and_threads() -> None:
    made: list[str] = []

    def make() -> None:
        for _ in range(50):
            made.extend(fresh_ids(20).to_pylist())

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == len(made) == 4000
    first, second = fresh_ids(3).to_pylist(), fresh_ids(3).to_pylist()
    assert sorted(first + second) == first + second
    assert all(is_ulid(id) for id in first)


def test_no_ids_at_all() -> None:
    assert len(fresh_ids(0)) == 0
