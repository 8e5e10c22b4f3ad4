"""Values as Arrow: one value, or the same one for many rows, in the type of a column.

Dates are stored as days and datetimes as milliseconds; both go through integers, since Arrow would
take a `date64` for whole days.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.values import epoch_days, epoch_milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value


def arrow_array(values: Sequence[Value], type: PropType) -> pa.Array:
    """Values of a declared type as a column; each must fit the type.

    >>> from omnigraph_core.types import DATETIME
    >>> arrow_array([dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)], DATETIME).cast("int64")[0]
    <pyarrow.Int64Scalar: 1000>
    """
    stored = arrow_type(type)
    plain = [plain_value(value) for value in values]
    if pa.types.is_temporal(stored):
        return pa.array(plain, whole_numbers(stored)).cast(stored)
    if type.is_list and pa.types.is_temporal(stored.value_type):
        return pa.array(plain, pa.list_(whole_numbers(stored.value_type))).cast(stored)
    return pa.array(plain, stored)


def arrow_column(value: Value, type: PropType, length: int) -> pa.Array:
    """One value, once per row."""
    one = arrow_array([value], type)
    return one.take(pa.array(np.zeros(length, np.int64)))


def plain_value(value: Value) -> object:
    """A value as Arrow builds it from: dates as numbers, tuples as lists."""
    if isinstance(value, dt.datetime):
        return epoch_milliseconds(value)
    if isinstance(value, dt.date):
        return epoch_days(value)
    return [plain_value(member) for member in value] if isinstance(value, tuple) else value


def whole_numbers(type: pa.DataType) -> pa.DataType:
    """The integers that a date type consists of."""
    return pa.int32() if type == pa.date32() else pa.int64()
