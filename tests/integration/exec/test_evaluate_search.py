"""Searching and ranking as conditions and as columns: null where there is nothing to find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.exec.evaluate import column_of, truth
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.query_vectors import query_vector
from omnigraph_core.exec.select import selected
from omnigraph_core.query.typed import (
    All,
    Any,
    Bm25,
    Compare,
    Constant,
    Holds,
    Nearest,
    ParamValue,
    PropertyValue,
    TextFunction,
    TextMatch,
    TypedOp,
)
from omnigraph_core.schema.arrow import node_schema
from omnigraph_core.schema.catalog import NodeType, PropertyDef
from omnigraph_core.types import BOOL, I64, STRING, PropType, Scalar
from tests.support.cases import each
from tests.support.dense_runs import NOTHING, PLENTY, Runs, stored

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.values import Value


def frame(**chosen: list[int]) -> Frame:
    length = len(next(iter(chosen.values())))
    return Frame(length, {name: np.array(rows, np.int32) for name, rows in chosen.items()})


TEXTS = ["red bolts", None, "a blue nut", "", "Red nuts"]


@pytest.fixture(scope="module", params=[PLENTY, NOTHING], ids=["kept", "too large"])
def articles(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    rows = pa.table(
        {
            "id": pa.array([str(n) for n in range(len(TEXTS))], pa.utf8()),
            "text": pa.array(TEXTS, pa.utf8()),
        },
        schema=pa.schema([pa.field("id", pa.utf8(), nullable=False), ("text", pa.utf8())]),
    )
    declared = {"text": PropertyDef("text", STRING.nullable())}
    table = stored(tmp_path_factory.mktemp("articles"), rows)
    return Runs(table, NodeType("Sample", declared), request.param)


def looking_for(query: TypedExpr) -> TextMatch:
    return TextMatch(TextFunction.SEARCH, PropertyValue("t", "text", STRING.nullable()), query)


RED = looking_for(Constant("red", STRING))


@each(
    ("condition", "expected"),
    [
        (Holds(RED), [0, 4]),
        (Compare(RED, TypedOp.EQ, Constant(True, BOOL)), [0, 4]),
        (Compare(RED, TypedOp.EQ, Constant(False, BOOL)), [2, 3]),
        (Compare(Constant(True, BOOL), TypedOp.NE, RED), [2, 3]),
        (Holds(looking_for(ParamValue("p", STRING.nullable()))), []),
        (
            Compare(
                looking_for(ParamValue("p", STRING.nullable())), TypedOp.EQ, Constant(False, BOOL)
            ),
            [],
        ),
        (All((Holds(RED), Holds(looking_for(Constant("nut", STRING))))), [4]),
        (Any((Holds(RED), Holds(looking_for(Constant("nut", STRING))))), [0, 2, 4]),
    ],
)
def test_searching_is_a_condition(
    articles: Runs, condition: TypedCondition, expected: list[int]
) -> None:
    params: dict[str, Value] = {"p": None}
    assert selected(articles.run("t", params=params), "t", (condition,)).tolist() == expected
    for chosen in ([4, -1, 1], [4, -1, 1, 0, 2, 3, 0, 0]):
        found = truth(articles.run("t", params=params), condition, frame(t=chosen))
        assert found.tolist() == [n in expected for n in chosen]


def test_searching_is_a_column(articles: Runs) -> None:
    rows = frame(t=[0, 1, 2, -1, 4])

    assert column_of(articles.run("t"), RED, rows).to_pylist() == [True, None, False, None, True]
    nothing = column_of(
        articles.run("t", params={"p": None}), looking_for(ParamValue("p", STRING.nullable())), rows
    )
    assert nothing.type == pa.bool_()
    assert nothing.null_count == 5


def test_fuzzy_takes_its_edits_from_the_query(articles: Runs) -> None:
    field = PropertyValue("t", "text", STRING.nullable())

    def found(edits: Value) -> list[int]:
        match = TextMatch(
            TextFunction.FUZZY, field, Constant("bluu", STRING), ParamValue("e", I64.nullable())
        )
        run = articles.run("t", params={"e": edits})
        rows: list[int] = selected(run, "t", (Holds(match),)).tolist()
        return rows

    assert found(1) == [2]
    assert found(0) == []
    assert found(None) == []


def test_a_rank_is_null_where_it_does_not_reach(articles: Runs) -> None:
    field = PropertyValue("t", "text", STRING.nullable())
    rank = Bm25(field, Constant("red", STRING))

    found = column_of(articles.run("t"), rank, frame(t=[4, 1, 2, -1, 0]))

    assert found.type == pa.float64()
    assert found.is_valid().to_pylist() == [True, False, False, False, True]
    assert found[0].as_py() > 0
    assert selected(
        articles.run("t"), "t", (Compare(rank, TypedOp.GT, Constant(0, I64)),)
    ).tolist() == [0, 4]


def test_distances_are_a_column(tmp_path: Path) -> None:
    vector = PropType(Scalar.VECTOR, dimension=2, is_nullable=True)
    part = NodeType("Part", {"shape": PropertyDef("shape", vector)})
    rows = pa.table([["a", "b", "c"], [[1, 0], None, [0, 2]]], schema=node_schema(part))
    near = Nearest(PropertyValue("p", "shape", vector), Constant((1.0, 0.0), vector))
    vectors = {near: query_vector(np.array([1.0, 0.0]))}
    run = Runs(stored(tmp_path, rows), part).run("p", vectors=vectors)

    found = column_of(run, near, frame(p=[2, 1, 0]))

    assert found.to_pylist() == [pytest.approx(1.0), None, pytest.approx(0.0)]
