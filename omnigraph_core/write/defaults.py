"""What a property left out takes: its declared default, in the form columns are built from."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.values import epoch_days, epoch_milliseconds

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.values import Value


def default_of(property: PropertyDef) -> object:
    """The default as a Python value Arrow takes: days for a Date, milliseconds for a DateTime."""
    return _plain(property.default)


def default_scalar(property: PropertyDef) -> pa.Scalar:
    """The default with the type of its column."""
    return pa.array([default_of(property)], arrow_type(property.type))[0]


def _plain(value: Value) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dt.datetime):
        return epoch_milliseconds(value)
    return epoch_days(value) if isinstance(value, dt.date) else value
