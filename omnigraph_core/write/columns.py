"""Whole columns from the forms inputs give them: Arrow arrays in, columns of a batch out.

Every function gives exactly what reading value by value would give, or raises `Doubt`: then the
caller reads value by value, which also finds out what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem, epoch_milliseconds, parse_datetime
from omnigraph_core.write.blob_text import parse_blob
from omnigraph_core.write.json_values import DATE_RANGE, DATETIME_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable

_EXACT_FLOATS: Final = 2**53
_ZULU_LENGTHS: Final = (len("2026-01-31T10:00Z"), len("2026-01-31T10:00:00.123456789Z"))
_ZONED: Final = (
    r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)$"
)
_LOCAL: Final = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?$"
_BELOW_MILLISECONDS: Final = r"(\.\d{3})\d+"


class Doubt(Exception):
    """Some value needs a closer look."""


def json_type(type: PropType, *, is_number: bool) -> pa.DataType:
    """The Arrow type to read JSON values of a declared type as.

    `is_number` tells how the less usual values are written: times as numbers, integers as floats.
    """
    if type.is_list:
        return pa.list_(pa.field("item", json_type(type.element, is_number=is_number)))
    if type.is_vector:
        return pa.list_(pa.field("item", pa.float32()))
    if type.scalar in (Scalar.DATE, Scalar.DATETIME):
        return pa.int64() if is_number else pa.utf8()
    if type.scalar.is_integer and is_number:
        return pa.float64()
    return pa.utf8() if type.is_blob else arrow_type(type)


def from_json(values: pa.Array, type: PropType) -> pa.Array:
    """A column of JSON values as the column of a property; blobs are not among them.

    The values are of the type `json_type` tells, or numbers of another width.

    Raises:
        Doubt: a value is not finite, not whole, out of range, or in an unusual form.
    """
    if type.is_vector:
        return to_vectors(values, type)
    if type.is_list:
        return to_lists(values, arrow_type(type), lambda items: from_json(items, type.element))
    if type.scalar in (Scalar.DATE, Scalar.DATETIME):
        return to_times(values, type.scalar)
    if type.scalar.is_float:
        return finite(_cast(values, arrow_type(type)))
    if type.scalar.is_integer and pa.types.is_floating(values.type):
        return to_whole(values, arrow_type(type))
    return _cast(values, arrow_type(type))


def to_times(values: pa.Array, scalar: Scalar) -> pa.Array:
    """Dates from text or days, DateTimes from text or milliseconds.

    Raises:
        Doubt: one of them is none.
    """
    if pa.types.is_floating(values.type):
        values = to_whole(values, pa.int64())
    if pa.types.is_integer(values.type):
        return days(values) if scalar is Scalar.DATE else milliseconds(values)
    return date_texts(values) if scalar is Scalar.DATE else datetime_texts(values)


def days(values: pa.Array) -> pa.Array:
    """Dates from days since 1970."""
    _expect_within(values, DATE_RANGE)
    return values.cast(pa.int32()).view(pa.date32())


def milliseconds(values: pa.Array) -> pa.Array:
    """DateTimes from milliseconds since 1970."""
    _expect_within(values, DATETIME_RANGE)
    # Viewed, not cast: a cast to date64 would cut the time of day.
    return values.cast(pa.int64()).view(pa.date64())


def date_texts(values: pa.Array) -> pa.Array:
    """Dates from `YYYY-MM-DD`."""
    dates = _cast(values, pa.date32())
    _expect_within(dates.view(pa.int32()), DATE_RANGE)
    return dates


def datetime_texts(values: pa.Array) -> pa.Array:
    """DateTimes from ISO texts, those of one form at once, a mixture one by one."""
    for pattern, kind in ((_ZONED, pa.timestamp("ms", "UTC")), (_LOCAL, pa.timestamp("ms"))):
        if _has_form(values, pattern):
            try:
                return milliseconds(_cast(_cut_fractions(values), kind).view(pa.int64()))
            except Doubt:
                break
    try:
        read = [None if v is None else parse_datetime(v) for v in values.to_pylist()]
    except ValueProblem as problem:
        raise Doubt from problem
    at = [None if v is None else epoch_milliseconds(v) for v in read]
    return pa.array(at, pa.int64()).view(pa.date64())


def _has_form(values: pa.Array, pattern: str) -> bool:
    # Most columns are in UTC throughout. Of these Arrow takes hours without minutes, we do not.
    if pattern == _ZONED and _all(pc.ends_with(values, "Z")):
        lengths = pc.min_max(pc.binary_length(values))
        low, high = lengths["min"].as_py(), lengths["max"].as_py()
        return low is None or (low >= _ZULU_LENGTHS[0] and high <= _ZULU_LENGTHS[1])
    return _all(pc.match_substring_regex(values, pattern))


def _cut_fractions(values: pa.Array) -> pa.Array:
    if (pc.max(pc.binary_length(values)).as_py() or 0) <= len("2026-01-31T10:00:00.000Z"):
        return values
    return pc.replace_substring_regex(values, _BELOW_MILLISECONDS, r"\1")


def finite(values: pa.Array) -> pa.Array:
    """Floats, none of them NaN or infinite."""
    if not _all(pc.is_finite(values)):
        raise Doubt
    return values


def to_whole(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Integers from floats that are whole, and small enough for that to mean anything."""
    if not _all(pc.less(pc.abs(finite(values)), _EXACT_FLOATS)):
        raise Doubt
    return _cast(values, kind)


def to_vectors(values: pa.Array, type: PropType) -> pa.Array:
    """Vectors from lists of floats of the right length."""
    if values.flatten().null_count:
        raise Doubt
    if not _all(pc.equal(pc.list_value_length(values), type.dimension)):
        raise Doubt
    vectors = _cast(values, arrow_type(type))
    finite(vectors.flatten())
    return vectors


def to_lists(
    values: pa.Array, kind: pa.DataType, convert: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Lists whose members are converted; none may be null."""
    members = values.flatten()
    if members.null_count:
        raise Doubt
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(offsets, convert(members), type=kind, mask=mask)


def blob_texts(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The bytes and the URIs of blobs in their text form."""
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.large_binary()), pa.nulls(len(values), pa.utf8())
    try:
        read = [(None, None) if v is None else parse_blob(v) for v in values.to_pylist()]
    except ValueProblem as problem:
        raise Doubt from problem
    return (
        pa.array([data for data, _ in read], pa.large_binary()),
        pa.array([uri for _, uri in read], pa.utf8()),
    )


def _expect_within(values: pa.Array, bounds: tuple[int, int]) -> None:
    found = pc.min_max(values)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < bounds[0] or high > bounds[1]):
        raise Doubt


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as problem:
        raise Doubt from problem


def _all(claims: pa.Array) -> bool:
    """Whether a claim holds wherever there is a value."""
    return bool(pc.all(claims, min_count=0).as_py())
