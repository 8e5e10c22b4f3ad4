"""Arrow values as they are shown to people: one scalar in, what JSON can hold out.

Any value can be shown, also one that Python has no object for: a date beyond its years, text that
is not UTF-8, a time in a zone nobody knows.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as kinds

from omnigraph_core.values import to_json
from omnigraph_core.write.blob_text import format_blob


def shown_scalar(scalar: pa.Scalar) -> object:
    """A value as JSON can hold it: bytes as text if they are, times as text if Python knows them.

    >>> shown_scalar(pa.scalar(float("nan"))), shown_scalar(pa.scalar(b"a"))
    ('NaN', 'a')
    """
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if kinds.is_dictionary(kind):
        return shown_scalar(scalar.value)
    if isinstance(scalar, pa.ListScalar):
        return [shown_scalar(item) for item in scalar.values]
    if isinstance(scalar, pa.StringScalar):
        return scalar.as_buffer().to_pybytes().decode(errors="replace")
    if isinstance(scalar, pa.BinaryScalar):
        return _text(scalar.as_buffer().to_pybytes())
    if kinds.is_temporal(kind):
        return _time(scalar)
    value = scalar.as_py()
    return to_json(value) if isinstance(value, bool | int | float) else str(value)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return format_blob(data)


def _time(scalar: pa.Scalar) -> object:
    kind = scalar.type
    if kinds.is_duration(kind):
        return int(scalar.value)
    try:
        # For nanoseconds Python has no object, and Arrow takes one of pandas if that is there.
        if kinds.is_timestamp(kind) and kind.unit == "ns":
            return str(scalar.cast(pa.utf8()))
        if kinds.is_date64(scalar.type):  # as a timestamp it keeps its time of day
            return str(pa.scalar(scalar.value, pa.timestamp("ms", "UTC")).as_py())
        return str(scalar.as_py())
    except (OverflowError, ValueError, KeyError, pa.ArrowException):  # a key: no such zone
        return int(scalar.value)
