"""Rows chosen by conditions on them: whichever way they are found, they are those that match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.exec.conditions import matches
from omnigraph_core.exec.scalars import arrow_array
from omnigraph_core.exec.select import node_mask, selected
from omnigraph_core.plan.values import Values
from omnigraph_core.query.typed import (
    TARGET,
    All,
    Compare,
    Constant,
    Holds,
    IsIn,
    ParamValue,
    PropertyValue,
    TypedOp,
)
from omnigraph_core.schema.catalog import NodeType, PropertyDef
from omnigraph_core.types import F64, I64, STRING, U64, PropType, Scalar
from omnigraph_core.write.identity import key_ids
from tests.support import condition_strategies as samples
from tests.support.dense_runs import NOTHING, PLENTY, Runs, stored
from tests.support.examples import examples
from tests.support.oracle import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.values import Value

ROWS = samples.arrow_rows()
PARAMS = samples.Params()
SAMPLE = NodeType(
    "Sample", {name: PropertyDef(name, type) for name, type in samples.COLUMNS.items()}
)
ID = PropertyValue(TARGET, "id", STRING)


@pytest.fixture(scope="module", params=[PLENTY, NOTHING], ids=["kept", "too large"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """All rows in memory, or no column of them."""
    return Runs(stored(tmp_path_factory.mktemp("select"), ROWS), SAMPLE, request.param)


def expected(conditions: Sequence[TypedCondition], rows: pa.Table = ROWS) -> list[int]:
    truth = matches(All(tuple(conditions)), rows, Values(NOW, PARAMS))
    numbers: list[int] = np.flatnonzero(truth.to_numpy(zero_copy_only=False)).tolist()
    return numbers


def found(
    runs: Runs, conditions: Sequence[TypedCondition], params: dict[str, Value] = PARAMS
) -> list[int]:
    """The rows both ways of asking agree on."""
    run = runs.run(TARGET, params=params)
    numbers = selected(run, TARGET, conditions)
    mask = node_mask(run, TARGET, conditions)
    assert numbers.dtype == np.int32
    assert mask is None or np.array_equal(np.flatnonzero(mask), numbers)
    chosen: list[int] = numbers.tolist()
    return chosen


@settings(max_examples=examples(1500))
@given(st.lists(samples.leaves | samples.conditions, max_size=3))
def test_rows_are_those_that_satisfy_the_conditions(
    runs: Runs, conditions: list[TypedCondition]
) -> None:
    assert found(runs, conditions) == expected(conditions)


@settings(max_examples=examples(400))
@given(
    st.lists(st.sampled_from(["00", "07", "44", "45", "", "x'y"]), max_size=4).map(tuple),
    st.lists(samples.leaves, max_size=2),
)
def test_ids_and_other_conditions(
    runs: Runs, ids: tuple[str, ...], others: list[TypedCondition]
) -> None:
    among: TypedCondition = IsIn(ID, Constant(ids, PropType(Scalar.STRING, is_list=True)))
    equal = [Compare(ID, TypedOp.EQ, Constant(id, STRING)) for id in ids[:1]]

    for condition in (among, *equal, All((among, *equal))):
        for conditions in ([condition, *others], [*others, condition]):
            assert found(runs, conditions) == expected(conditions)


def test_no_conditions_choose_every_row(runs: Runs) -> None:
    run = runs.run(TARGET)

    assert selected(run, TARGET, ()).tolist() == list(range(len(ROWS)))
    assert node_mask(run, TARGET, ()) is None


def test_a_null_parameter_chooses_nothing(runs: Runs) -> None:
    text, texts = STRING.nullable(), PropType(Scalar.STRING, is_list=True, is_nullable=True)
    for condition in (
        Compare(ID, TypedOp.EQ, ParamValue("p", text)),
        Compare(ParamValue("p", text), TypedOp.EQ, ID),
        IsIn(ID, ParamValue("p", texts)),
        Compare(PropertyValue(TARGET, "one String", text), TypedOp.NE, ParamValue("p", text)),
        Holds(ParamValue("p", PropType(Scalar.BOOL, is_nullable=True))),
    ):
        assert found(runs, [condition], {"p": None}) == []


def test_an_empty_table(tmp_path: Path) -> None:
    runs = Runs(stored(tmp_path, ROWS.slice(0, 0)), SAMPLE)
    by_id = Compare(ID, TypedOp.EQ, Constant("00", STRING))
    by_text = Compare(PropertyValue(TARGET, "one String", STRING), TypedOp.GE, Constant("", STRING))

    assert found(runs, []) == found(runs, [by_id]) == found(runs, [by_text]) == []


# Keys


def keyed(root: Path, columns: dict[str, PropType], rows: pa.Table) -> Runs:
    """Rows with ids made of their key, which is all columns."""
    key = tuple(columns)
    rows = rows.add_column(0, pa.field("id", pa.utf8(), nullable=False), key_ids(rows, key))
    declared = {name: PropertyDef(name, type) for name, type in columns.items()}
    return Runs(stored(root, rows), NodeType("Sample", declared, key=key))


def givens(scalar: Scalar) -> list[tuple[Value, PropType]]:
    """What a key of the type may be compared with."""
    if not scalar.is_numeric:
        return [(value, PropType(scalar)) for value in samples.samples(scalar)]
    integers = [(n, I64 if n < 2**63 else U64) for n in samples.INTEGERS]
    return [*integers, *((number, F64) for number in samples.FLOATS), (2.7, F64)]


@pytest.mark.parametrize("scalar", samples.PLAIN)
def test_a_key_finds_what_comparing_it_would(tmp_path: Path, scalar: Scalar) -> None:
    type = PropType(scalar)
    distinct = list(dict.fromkeys(samples.samples(scalar)))
    rows = pa.table({"code": arrow_array(distinct, type)})
    runs = keyed(tmp_path, {"code": type}, rows)
    code = PropertyValue(TARGET, "code", type)

    for value, given_type in givens(scalar):
        constant = Constant(value, given_type)
        members = Constant((value, distinct[0]), PropType(given_type.scalar, is_list=True))
        for condition in (
            Compare(code, TypedOp.EQ, constant),
            Compare(constant, TypedOp.EQ, code),
            IsIn(code, members),
        ):
            assert found(runs, [condition]) == expected([condition], rows), condition
    assert runs.cache.peek(("column", runs.dense.identity, "code")) is None, "looked up, not read"


def test_an_f32_parameter_finds_the_key_stored_from_it(tmp_path: Path) -> None:
    single = PropType(Scalar.F32)
    rows = pa.table({"code": pa.array([0.25, 0.1, -0.0], pa.float32())})
    runs = keyed(tmp_path, {"code": single}, rows)
    condition = Compare(PropertyValue(TARGET, "code", single), TypedOp.EQ, ParamValue("p", single))

    assert found(runs, [condition], {"p": 0.1}) == [1]
    assert found(runs, [condition], {"p": 0.0}) == [2]
    assert found(runs, [condition], {"p": 0.3}) == []


def test_a_key_of_several_columns(tmp_path: Path) -> None:
    columns = {"shelf": STRING, "place": I64}
    rows = pa.table({"shelf": ["a", "a", 'b"', "b"], "place": [1, 2, 1, 2]})
    runs = keyed(tmp_path, columns, rows)

    def equals(name: str, value: Value, type: PropType) -> TypedCondition:
        return Compare(
            PropertyValue(TARGET, name, columns[name]), TypedOp.EQ, Constant(value, type)
        )

    for shelf in ("a", 'b"', "c", None):
        for place in (1, 2.0, 2.5, 3):
            conditions = [equals("place", place, F64), equals("shelf", shelf, STRING)]
            assert found(runs, conditions) == expected(conditions, rows)
    alone = [equals("place", 1, I64)]
    assert found(runs, alone) == [0, 2]


def test_a_column_too_large_is_fetched_for_the_rows_that_others_leave(tmp_path: Path) -> None:
    count = 5_000
    rows = pa.table(
        {
            "id": pa.array([f"{n:05}" for n in range(count)], pa.utf8()),
            "stock": pa.array(range(count), pa.int64()),
            "about": pa.array([f"{'long ' * 40}{n % 5}" for n in range(count)], pa.utf8()),
        },
        schema=pa.schema(
            [pa.field("id", pa.utf8(), nullable=False), ("stock", pa.int64()), ("about", pa.utf8())]
        ),
    )
    declared = {"stock": PropertyDef("stock", I64), "about": PropertyDef("about", STRING)}
    runs = Runs(stored(tmp_path, rows), NodeType("Sample", declared), 400_000)
    stock, about = PropertyValue(TARGET, "stock", I64), PropertyValue(TARGET, "about", STRING)
    assert runs.dense.fits("stock")
    assert not runs.dense.fits("about")

    ends = Compare(about, TypedOp.EQ, Constant("long " * 40 + "3", STRING))
    for least in (100, 4_990):
        conditions = [ends, Compare(stock, TypedOp.GE, Constant(least, I64))]
        assert found(runs, conditions) == expected(conditions, rows)
    assert not runs.dense.is_resident("about")


# Texts that hardly repeat


def test_a_text_asked_for_again_and_again(tmp_path: Path) -> None:
    count = 5_000
    texts = [None if n % 50 == 7 else f"name {n // 2}" for n in range(count)]
    rows = pa.table(
        {
            "id": pa.array([f"{n:05}" for n in range(count)], pa.utf8()),
            "name": pa.array(texts, pa.utf8()),
            "stock": pa.array(range(count), pa.int64()),
        },
        schema=pa.schema(
            [pa.field("id", pa.utf8(), nullable=False), ("name", pa.utf8()), ("stock", pa.int64())]
        ),
    )
    declared = {"name": PropertyDef("name", STRING.nullable()), "stock": PropertyDef("stock", I64)}
    runs = Runs(stored(tmp_path, rows), NodeType("Sample", declared))
    name = PropertyValue(TARGET, "name", STRING.nullable())
    stock = Compare(PropertyValue(TARGET, "stock", I64), TypedOp.GE, Constant(1_000, I64))
    several = PropType(Scalar.STRING, is_list=True)

    for _ in range(2):
        for text in ("name 3", "name 1200", "name", "", "name 2499", None):
            for conditions in (
                [Compare(name, TypedOp.EQ, Constant(text, STRING))],
                [stock, Compare(Constant(text, STRING), TypedOp.EQ, name)],
                [IsIn(name, Constant(("name 900", text or "", "name 900", "name 3"), several))],
                [IsIn(name, Constant((), several))],
            ):
                assert found(runs, conditions) == expected(conditions, rows)
    assert runs.dense.is_mapped("name")
