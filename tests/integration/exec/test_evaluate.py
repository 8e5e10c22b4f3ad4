"""Columns and truths over rows of a match: what each row would give alone, in the same order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import InvariantBroken, QueryCancelled
from omnigraph_core.exec import evaluate
from omnigraph_core.exec.evaluate import column_of, table_truth, truth
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.guard import Cancellation, Guard
from omnigraph_core.exec.select import selected
from omnigraph_core.ir.nodes import Filter
from omnigraph_core.query.mentions import map_operands
from omnigraph_core.query.result_schema import node_object_type
from omnigraph_core.query.typed import (
    TARGET,
    Aggregate,
    AggregateFunction,
    Any,
    Compare,
    Constant,
    IsIn,
    IsNull,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    TypedOp,
)
from omnigraph_core.schema.arrow import arrow_type, node_schema
from omnigraph_core.schema.catalog import NodeType, PropertyDef
from omnigraph_core.types import DATETIME, I64, STRING, PropType, Scalar
from tests.support import condition_strategies as samples
from tests.support.cases import each
from tests.support.dense_runs import NOTHING, PLENTY, Runs, stored
from tests.support.examples import examples
from tests.support.oracle import NOW, Given, iter_rows
from tests.support.oracle_graph import OracleGraph
from tests.support.people import people_catalog

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.query.typed import TypedCondition, TypedExpr

ROWS = samples.arrow_rows()
NODES = samples.nodes()
PARAMS = samples.Params()
GIVEN = Given(OracleGraph(people_catalog(), []), PARAMS, NOW)
SAMPLE = NodeType(
    "Sample", {name: PropertyDef(name, type) for name, type in samples.COLUMNS.items()}
)
numbers = st.lists(st.integers(-1, samples.ROWS - 1), max_size=8) | st.lists(
    st.integers(-1, samples.ROWS - 1), min_size=samples.ROWS, max_size=samples.ROWS + 15
)


@pytest.fixture(scope="module", params=[PLENTY, NOTHING], ids=["kept", "too large"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """All rows in memory, or no column of them."""
    return Runs(stored(tmp_path_factory.mktemp("evaluate"), ROWS), SAMPLE, request.param)


def frame(**chosen: list[int]) -> Frame:
    length = len(next(iter(chosen.values())))
    return Frame(length, {name: np.array(rows, np.int32) for name, rows in chosen.items()})


def accepted(condition: TypedCondition, rows: Frame) -> list[bool]:
    """What the oracle says about each row."""
    found = []
    for place in range(rows.length):
        bound = {
            name: None if places[place] < 0 else NODES[places[place]]
            for name, places in rows.numbers.items()
        }
        found.append(any(True for _ in iter_rows((Filter(condition),), bound, GIVEN)))
    return found


@settings(max_examples=examples(1500))
@given(samples.leaves | samples.conditions, numbers)
def test_truth_of_rows_in_any_order_with_nulls(
    runs: Runs, condition: TypedCondition, chosen: list[int]
) -> None:
    rows = frame(target=chosen)

    found = truth(runs.run(TARGET, params=PARAMS), condition, rows)

    assert found.dtype == np.bool_
    assert found.tolist() == accepted(condition, rows)


@settings(max_examples=examples(1500))
@given(samples.leaves | samples.conditions, numbers, st.randoms(use_true_random=False))
def test_truth_of_two_variables(
    runs: Runs, condition: TypedCondition, chosen: list[int], random: object
) -> None:
    shuffled = list(chosen)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    def of_both(expr: TypedExpr) -> TypedExpr:
        if not isinstance(expr, PropertyValue):
            return expr
        variable = "b" if expr.property.startswith("two") else "a"
        return PropertyValue(variable, expr.property, expr.type)

    both = map_operands(condition, of_both)
    rows = frame(a=chosen, b=shuffled)

    assert truth(runs.run("a", "b", params=PARAMS), both, rows).tolist() == accepted(both, rows)


@each("op", [TypedOp.EQ, TypedOp.NE, TypedOp.LT])
def test_two_nodes_are_compared_by_id(runs: Runs, op: TypedOp) -> None:
    rows = frame(a=[0, 1, 2, -1, -1, 3], b=[0, 2, 1, 1, -1, -1])
    left, right = (PropertyValue(name, "id", STRING.nullable()) for name in "ab")
    condition = Compare(left, op, right)

    assert truth(runs.run("a", "b"), condition, rows).tolist() == accepted(condition, rows)


def test_truth_for_the_whole_table_is_found_once(runs: Runs) -> None:
    run = runs.run(TARGET)
    condition = Compare(
        PropertyValue(TARGET, "one I64", I64.nullable()), TypedOp.GT, Constant(1, I64)
    )

    first = table_truth(run, TARGET, condition)

    assert table_truth(run, TARGET, condition) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = True
    assert truth(run, condition, frame(target=[*range(samples.ROWS), 0])).flags.writeable


def test_a_table_is_compared_in_portions(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "_PORTION", 7)
    column = PropertyValue(TARGET, "one String", STRING.nullable())
    condition = Any((IsNull(column), Compare(column, TypedOp.LT, Constant("b", STRING))))
    everyone = frame(target=list(range(samples.ROWS)))

    found = table_truth(runs.run(TARGET), TARGET, condition)

    assert found.tolist() == accepted(condition, everyone)
    cancellation = Cancellation()
    cancellation.cancel()
    stopped = replace(runs.run(TARGET), guard=Guard(budget=1, cancellation=cancellation))
    with pytest.raises(QueryCancelled):
        table_truth(stopped, TARGET, condition)


# Texts that repeat

COUNT = 3_000
CITIES = [None, "Bern", "Basel", "Ulm", "", "Bonn"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    rows = pa.table(
        {
            "id": pa.array([f"{n:04}" for n in range(COUNT)], pa.utf8()),
            "city": pa.array([CITIES[n * 7 % 6] for n in range(COUNT)], pa.utf8()),
            "name": pa.array([f"name {n}" for n in range(COUNT)], pa.utf8()),
        },
        schema=pa.schema(
            [pa.field("id", pa.utf8(), nullable=False), ("city", pa.utf8()), ("name", pa.utf8())]
        ),
    )
    type = STRING.nullable()
    declared = {name: PropertyDef(name, type) for name in ("city", "name")}
    return Runs(stored(tmp_path_factory.mktemp("people"), rows), NodeType("Sample", declared))


def city(variable: str = TARGET) -> PropertyValue:
    return PropertyValue(variable, "city", STRING.nullable())


@each(
    ("condition", "hit"),
    [
        (Compare(city(), TypedOp.EQ, Constant("Ulm", STRING)), {"Ulm"}),
        (Compare(city(), TypedOp.EQ, Constant("Rome", STRING)), set()),
        (Compare(city(), TypedOp.NE, Constant("Ulm", STRING)), {"Bern", "Basel", "", "Bonn"}),
        (Compare(city(), TypedOp.STARTS_WITH, Constant("B", STRING)), {"Bern", "Basel", "Bonn"}),
        (Compare(Constant("Bern", STRING), TypedOp.LT, city()), {"Bonn", "Ulm"}),
        (
            IsIn(city(), Constant(("", "Ulm", "x"), PropType(Scalar.STRING, is_list=True))),
            {"", "Ulm"},
        ),
        (IsNull(city()), {None}),
        (
            Any((IsNull(city()), Compare(city(), TypedOp.HAS_TEXT, Constant("s", STRING)))),
            {None, "Basel"},
        ),
    ],
)
def test_texts_that_repeat(people: Runs, condition: TypedCondition, hit: set[str | None]) -> None:
    texts = [CITIES[n * 7 % 6] for n in range(COUNT)]

    for _ in range(2):  # from the table, then from memory
        found = selected(people.run(TARGET), TARGET, (condition,))
        assert found.tolist() == [n for n, text in enumerate(texts) if text in hit]
    for chosen in ([5, -1, 5, 0], [5, -1, 5, 0] * 500, [*range(COUNT), -1, 2]):
        expected = [(None if n < 0 else texts[n]) in hit for n in chosen]
        assert truth(people.run(TARGET), condition, frame(target=chosen)).tolist() == expected
    dense = people.dense
    assert people.cache.peek(("codes", dense.identity, "name")) is None, "names do not repeat"


@pytest.mark.parametrize("op", [TypedOp.EQ, TypedOp.NE])
def test_texts_of_two_rows_are_compared_by_code(people: Runs, op: TypedOp) -> None:
    people.dense.column("city")
    a, b = [0, 1, 7, -1, -1, 3] * 300, [6, 2, 1, 1, -1, 3] * 300
    texts = [*(CITIES[n * 7 % 6] for n in range(COUNT)), None]
    condition = Compare(city("a"), op, city("b"))

    found = truth(people.run("a", "b"), condition, frame(a=a, b=b))

    expected = []
    for left, right in zip(a, b, strict=True):
        x, y = texts[left], texts[right]
        expected.append(x is not None and y is not None and (x == y) is (op is TypedOp.EQ))
    assert found.tolist() == expected


# Columns


@each("name", ["id", *samples.COLUMNS])
def test_a_property_of_rows(runs: Runs, name: str) -> None:
    chosen = [3, -1, 0, 3, 44]
    column = ROWS.column(name).combine_chunks()
    type = samples.COLUMNS.get(name, STRING)

    found = column_of(runs.run("s"), PropertyValue("s", name, type), frame(s=chosen))

    places = pa.array([3, None, 0, 3, 44], pa.int64())
    assert found.type == column.type
    assert found.equals(column.take(places))


@each("name", samples.COLUMNS)
def test_given_values_are_repeated(runs: Runs, name: str) -> None:
    type = samples.COLUMNS[name]
    for row in range(8):
        value = NODES[row].properties[name]
        run = runs.run("s", params={"p": value})
        for length in (0, 1, 3):
            rows = frame(s=[0] * length)
            for expr in (Constant(value, type), ParamValue("p", type)):
                found = column_of(run, expr, rows)
                stored_value = ROWS.column(name).combine_chunks().slice(row, 1)
                assert found.type == arrow_type(type)
                assert found.equals(pa.concat_arrays([stored_value] * length or [found]))


def test_now_is_in_milliseconds(runs: Runs) -> None:
    found = column_of(runs.run("s"), NowValue(), frame(s=[0, 1]))

    assert found.type == pa.date64()
    assert found.cast(pa.int64()).to_pylist() == [int(NOW.timestamp() * 1000)] * 2


def test_what_no_row_has_is_refused(runs: Runs) -> None:
    total = Aggregate(AggregateFunction.COUNT, NodeValue("s", "Sample"), I64)

    with pytest.raises(InvariantBroken, match="no value"):
        column_of(runs.run("s"), total, frame(s=[0]))


def test_nodes_are_shown_as_objects(tmp_path: Path) -> None:
    declared = {
        "name": STRING,
        "made": DATETIME.nullable(),
        "shape": PropType(Scalar.VECTOR, dimension=2),
        "tags": PropType(Scalar.STRING, is_list=True, is_nullable=True),
    }
    part = NodeType("Part", {name: PropertyDef(name, type) for name, type in declared.items()})
    rows = pa.table(
        [["a", "b"], ["bolt", "nut"], [1001, None], [[1, 2], [3, 4]], [["x"], None]],
        schema=pa.schema(
            [
                field.with_type(pa.int64()) if field.name == "made" else field
                for field in node_schema(part)
            ]
        ),
    ).cast(node_schema(part))
    runs = Runs(stored(tmp_path, rows), part)
    node = NodeValue("p", "Part", is_nullable=True)

    found = column_of(runs.run("p"), node, frame(p=[1, -1, 0]))
    whole = column_of(runs.run("p"), NodeValue("p", "Part"), frame(p=[0, 1]))

    found.validate()
    assert found.type == whole.type == node_object_type(part)
    bolt: dict[str, object] = {"id": "a", "name": "bolt", "made": 1001, "tags": ["x"]}
    shown = pa.StructArray.from_arrays(
        [found.field(n).cast(pa.int64()) if n == "made" else found.field(n) for n in bolt],
        names=list(bolt),
        mask=found.is_null(),
    )
    nut = {"id": "b", "name": "nut", "made": None, "tags": None}
    assert shown.to_pylist() == [nut, None, bolt]
    assert whole.is_valid().to_pylist() == [True, True]
