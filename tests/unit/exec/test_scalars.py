"""Values become cells of their column's type, with nothing lost."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.exec.scalars import arrow_array, arrow_column
from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import DATE, DATETIME, STRING, PropType, Scalar
from tests.support.cases import each

if TYPE_CHECKING:
    from omnigraph_core.values import Value

NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=dt.UTC)


@each(
    ("value", "type"),
    [
        ("é", STRING),
        (2**64 - 1, PropType(Scalar.U64)),
        (True, PropType(Scalar.BOOL)),
        ((1.0, 2.0), PropType(Scalar.VECTOR, dimension=2)),
        (("a", "b"), PropType(Scalar.STRING, is_list=True)),
        (None, PropType(Scalar.I32, is_nullable=True)),
        (None, PropType(Scalar.DATETIME, is_list=True, is_nullable=True)),
    ],
)
def test_a_value_has_the_type_of_its_column(value: Value, type: PropType) -> None:
    (cell,) = made = arrow_array([value], type)

    assert made.type == arrow_type(type)
    assert cell.as_py() == (list(value) if isinstance(value, tuple) else value)


def test_a_datetime_keeps_its_milliseconds() -> None:
    cells = arrow_array([NOON, None], DATETIME)
    members = arrow_array([(NOON,)], PropType(Scalar.DATETIME, is_list=True))

    assert cells.type == pa.date64()
    assert cells.cast(pa.int64()).to_pylist() == [1769860800500, None]
    assert members.flatten().cast(pa.int64()).to_pylist() == [1769860800500]


def test_dates_before_the_epoch() -> None:
    assert arrow_array([dt.date(1, 1, 1)], DATE).to_pylist() == [dt.date(1, 1, 1)]


def test_one_value_for_many_rows() -> None:
    assert arrow_column("a", STRING, 3).to_pylist() == ["a", "a", "a"]
    assert len(arrow_column("a", STRING, 0)) == 0
