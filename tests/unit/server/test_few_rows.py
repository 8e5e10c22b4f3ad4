"""A few rows are the same text whichever way they are written."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.exec.json_rows import content, plain_objects
from omnigraph_core.server.few_rows import MOST_BYTES, MOST_ROWS, try_few_rows
from tests.support.cases import each

KINDS = {
    pa.string(): st.text(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(width=64),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    names = draw(
        st.lists(st.text(min_size=1), min_size=len(kinds), max_size=len(kinds), unique=True)
    )
    count = draw(st.integers(1, 5))
    columns = [
        pa.array(draw(st.lists(st.none() | KINDS[kind], min_size=count, max_size=count)), kind)
        for kind in kinds
    ]
    return pa.table(columns, names)


@given(tables())
def test_texts_are_those_of_the_kernels(rows: pa.Table) -> None:
    few = try_few_rows(rows)
    assert few is None or few + b"," == content(plain_objects(rows, end=","))


def test_plain_values_are_written_here() -> None:
    rows = pa.table({"a": ['x"\n', None], "b": [1, 2], "c": [True, None], "d": [0.5, -0.0]})
    expected = rb'{"a":"x\"\n","b":1,"c":true,"d":0.5},{"a":null,"b":2,"c":null,"d":-0.0}'
    assert try_few_rows(rows) == expected


def test_no_rows() -> None:
    assert try_few_rows(pa.table({"a": pa.array([], pa.string())})) == b""


@each(
    "column",
    [
        pa.array([1e300]),
        pa.array([float("nan")]),
        pa.array([1.5], pa.float32()),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([b"x"], pa.large_binary()),
        pa.array(range(MOST_ROWS + 1)),
        pa.array(["x" * (MOST_BYTES + 1)]),
    ],
    ids=["large", "nan", "float32", "list", "struct", "blob", "rows", "bytes"],
)
def test_the_rest_is_left_to_the_kernels(column: pa.Array) -> None:
    assert try_few_rows(pa.table({"a": column})) is None
