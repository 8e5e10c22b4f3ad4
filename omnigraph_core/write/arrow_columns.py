"""Columns of Arrow and Parquet data as columns of properties, without loss.

An array of whatever type in, the column of a property out, and for the values that do not fit the
reason by row. Floats may be rounded to 32 bits and times to milliseconds, as in text; nothing else
is changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem
from omnigraph_core.write.columns import Doubt, blob_texts, from_json, json_type
from omnigraph_core.write.json_values import read_value

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT: Final = pa.utf8()
_DAY: Final = 86_400_000
_MOST_SECONDS: Final = 2**63 // 1000 - 1
_PER_MILLISECOND: Final = {"us": 1_000, "ns": 1_000_000}


class _NotUtf8(Exception):
    """Some text is not."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A column, the URIs beside it if it is one of blobs, and what is wrong by row."""

    values: pa.Array
    uris: pa.Array | None = None
    problems: dict[int, str] = field(default_factory=dict)


def can_hold(kind: pa.DataType, type: PropType, *, has_decimals: bool = False) -> bool:
    """Whether values of an Arrow type can be values of a declared type at all.

    Args:
        has_decimals: decimals are taken as numbers; else they are refused, since a declared type
            can keep few of them exactly.
    """
    if kinds.is_null(kind):
        return True
    if kinds.is_dictionary(kind):
        return can_hold(kind.value_type, type, has_decimals=has_decimals)
    if type.is_vector or type.is_list:
        member = _member(type)
        return _is_list(kind) and can_hold(kind.value_type, member, has_decimals=has_decimals)
    if type.scalar in (Scalar.DATE, Scalar.DATETIME):
        return kinds.is_date(kind) or kinds.is_timestamp(kind) or _is_text(kind) or _is_int(kind)
    if type.scalar.is_numeric:
        is_decimal = has_decimals and kinds.is_decimal(kind)
        return _is_int(kind) or kinds.is_floating(kind) or is_decimal
    if type.is_blob:
        return _is_text(kind) or _is_bytes(kind)
    return kinds.is_boolean(kind) if type.scalar is Scalar.BOOL else _is_text(kind)


def _is_list(kind: pa.DataType) -> bool:
    is_view = kinds.is_list_view(kind) or kinds.is_large_list_view(kind)
    is_plain = kinds.is_list(kind) or kinds.is_large_list(kind)
    return bool(is_view or is_plain or kinds.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_int(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    is_plain = kinds.is_binary(kind) or kinds.is_large_binary(kind)
    return bool(is_plain or kinds.is_fixed_size_binary(kind) or kinds.is_binary_view(kind))


def _member(type: PropType) -> PropType:
    return PropType(Scalar.F32) if type.is_vector else type.element


def convert(values: pa.Array, type: PropType) -> Converted:
    """The column of a property from an array that can hold it."""
    try:
        plain = _plain(values, type)
    except _NotUtf8:
        return convert_each(_plain(values, type, text=pa.binary()), type, _as_json)
    if type.is_blob and _is_bytes(plain.type):
        return Converted(plain, pa.nulls(len(plain), pa.utf8()))
    try:
        if type.is_blob:
            return Converted(*blob_texts(plain))
        return Converted(from_json(plain, type))
    except Doubt:
        return convert_each(plain, type, _as_json)


def convert_each(
    values: pa.Array, type: PropType, as_json: Callable[[object, PropType], object]
) -> Converted:
    """The same value by value, with the reasons of those that do not fit."""
    read: list[object] = []
    problems: dict[int, str] = {}
    for row, value in enumerate(values.to_pylist()):
        try:
            read.append(None if value is None else read_value(as_json(value, type), type))
        except ValueProblem as problem:
            read.append(None)
            problems[row] = str(problem)
    if not type.is_blob:
        return Converted(pa.array(read, arrow_type(type)), None, problems)
    pairs = [pair if isinstance(pair, tuple) else (None, None) for pair in read]
    data = pa.array([data for data, _ in pairs], pa.large_binary())
    return Converted(data, pa.array([uri for _, uri in pairs], pa.utf8()), problems)


def _as_json(value: object, type: PropType) -> object:
    """A value as JSON would have given it; text may come as its bytes."""
    if isinstance(value, bytes):
        return _decoded(value)
    if isinstance(value, list):
        return [_as_json(item, _member(type)) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueProblem(f"expected a finite number, found {value}")
        return Decimal(value)
    if isinstance(value, int) and type.scalar.is_float and not _is_exact(value, type.scalar):
        raise ValueProblem(f"{value} cannot be kept exactly as {type.scalar}")
    return value


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as problem:
        raise ValueProblem("not UTF-8") from problem


def _is_exact(value: int, scalar: Scalar) -> bool:
    return float(np.float32(value)) == value if scalar is Scalar.F32 else float(value) == value


def _plain(values: pa.Array, type: PropType, *, text: pa.DataType = _TEXT) -> pa.Array:
    """The values in the types that JSON values are read as, text also as its bytes.

    Raises:
        _NotUtf8: there is text that is none.
    """
    kind = values.type
    if kinds.is_null(kind):
        return pa.nulls(len(values), json_type(type, is_number=False))
    if kinds.is_dictionary(kind):
        return _plain(values.dictionary_decode(), type, text=text)
    if _is_list(kind):
        return _plain_lists(values, type, text)
    if _is_text(kind):
        return _plain_texts(values, text)
    if _is_bytes(kind):
        return values.cast(pa.large_binary())
    if kinds.is_date(kind) or kinds.is_timestamp(kind):
        return _plain_times(values, type)
    if kinds.is_decimal(kind) and type.scalar.is_float:
        return values.cast(_TEXT).cast(pa.float64())  # the nearest one, which a direct cast misses
    return values.cast(pa.float32()) if kinds.is_float16(kind) else values


def _plain_lists(values: pa.Array, type: PropType, text: pa.DataType) -> pa.Array:
    # Built anew, not cast: a cast from list views leaves out the last offset.
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = values.is_null() if values.null_count else None
    members = _plain(values.flatten(), _member(type), text=text)
    return pa.ListArray.from_arrays(pa.array(offsets), members, mask=mask)


def _plain_texts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    # Files say that text is UTF-8; neither reading nor casting makes sure of it.
    texts = values.cast(kind)
    if kind == _TEXT:
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as problem:
            raise _NotUtf8 from problem
    return texts


def _plain_times(values: pa.Array, type: PropType) -> pa.Array:
    """Days for a Date, milliseconds for a DateTime; a time of day makes a fraction of a day."""
    is_date = type.scalar is Scalar.DATE
    if kinds.is_date32(values.type):
        days = values.view(pa.int32())
        return days if is_date else pc.multiply(days.cast(pa.int64()), _DAY)
    at = _milliseconds(values)
    if not is_date:
        return at
    if not pc.all(pc.equal(_remainder(at, _DAY), 0), min_count=0).as_py():
        return pc.divide(at.cast(pa.float64(), safe=False), float(_DAY))
    return _floor(at, _DAY)


def _milliseconds(values: pa.Array) -> pa.Array:
    counts = values.view(pa.int64())
    unit = values.type.unit if kinds.is_timestamp(values.type) else "ms"
    if unit == "s":
        # What would overflow lies outside the years that can be shown, and still does when cut.
        mask = counts.is_null().to_numpy(zero_copy_only=False)
        seconds = pc.fill_null(counts, 0).to_numpy()
        return pa.array(np.clip(seconds, -_MOST_SECONDS, _MOST_SECONDS) * 1000, mask=mask)
    return counts if unit == "ms" else _floor(counts, _PER_MILLISECOND[unit])


def _floor(values: pa.Array, divisor: int) -> pa.Array:
    mask = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(pc.fill_null(values, 0).to_numpy() // divisor, mask=mask)


def _remainder(values: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(_floor(values, divisor), divisor))
