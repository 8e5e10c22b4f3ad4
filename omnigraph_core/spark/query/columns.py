"""Columns on their way through Spark: Arrow arrays of a table come in, plain ones go out, and back.

Spark only compares, groups and sorts what it carries, so every type becomes one for which it does
that as the engine does: dates are the integers they consist of, unsigned integers are signed ones
of the same order, vectors are lists. No value is lost on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from omnigraph_core.errors import InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.types import DataType

_CARRIED: Final = {
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
}
_SPARK: Final[dict[pa.DataType, DataType]] = {
    pa.utf8(): StringType(),
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
}
_SIGN: Final = pa.scalar(-(2**63), pa.int64())


def spark_schema(fields: Iterable[tuple[str, pa.DataType]]) -> StructType:
    """The columns of a frame that carries values of these types; all may be null."""
    return StructType([StructField(name, spark_type(kind)) for name, kind in fields])


def spark_type(kind: pa.DataType) -> DataType:
    """The type of Spark that carries an Arrow type.

    >>> spark_type(pa.uint64()).simpleString(), spark_type(pa.list_(pa.float32(), 3)).simpleString()
    ('bigint', 'array<float>')
    """
    carried = carried_type(kind)
    if kinds.is_list(carried):
        return ArrayType(spark_type(carried.value_type))
    found = _SPARK.get(carried)
    if found is None:
        raise InvariantBroken(f"rows on Spark carry values of known types, not {kind}")
    return found


def carried_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type that values are carried in."""
    if _is_listed(kind):
        return pa.list_(carried_type(kind.value_type))
    return _CARRIED.get(kind, kind)


def carried(values: pa.Array) -> pa.Array:
    """Values of a table as Spark carries them."""
    kind = values.type
    if _is_listed(kind):
        return _listed(values, carried(values.flatten()), carried_type(kind))
    if kinds.is_uint64(kind):
        return pc.bit_wise_xor(values.view(pa.int64()), _SIGN)
    if kinds.is_uint32(kind):
        return values.cast(pa.int64())
    return values.view(_CARRIED[kind]) if kinds.is_date(kind) else values


def restored(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Carried values as the type they had."""
    if kinds.is_fixed_size_list(kind):
        return _vectors(values, kind)
    if kinds.is_list(kind):
        return _listed(values, restored(values.flatten(), kind.value_type), kind)
    if kinds.is_uint64(kind):
        return pc.bit_wise_xor(values, _SIGN).view(kind)
    return values.view(kind) if kinds.is_date(kind) else values.cast(kind)


def _is_listed(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_fixed_size_list(kind))


def _listed(values: pa.Array, members: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same lists with other members; built anew, since casts of lists are not to be trusted."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), members, type=kind, mask=mask)


def _vectors(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Lists of one length as vectors; those of null ones are filled up."""
    width = kind.list_size
    numbers = values.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    if not values.null_count:
        return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), type=kind)
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    filled = np.zeros((len(values), width), np.float32)
    filled[is_there] = numbers
    members = pa.array(filled.ravel())
    return pa.FixedSizeListArray.from_arrays(members, type=kind, mask=pa.array(~is_there))
