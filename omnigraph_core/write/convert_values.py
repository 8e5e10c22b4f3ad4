"""Values of an Arrow table in other types, also where they are members of lists.

Columns come in and go out; those without a value to convert stay as they are, type and bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

if TYPE_CHECKING:
    from collections.abc import Callable


def convert_values(
    rows: pa.Table,
    is_meant: Callable[[pa.DataType], bool],
    convert: Callable[[pa.Array], pa.Array],
) -> pa.Table:
    """The table with values of some types converted, in columns and in lists of any kind.

    Args:
        is_meant: whether values of a type that is no list are to be converted.
        convert: the same values in another type.
    """

    def converted(values: pa.Array) -> pa.Array:
        if not _has(values.type, is_meant):
            return values
        return _list(values, converted) if _is_list(values.type) else convert(values)

    for at, field in enumerate(rows.schema):
        if _has(field.type, is_meant):
            chunks = rows.column(at).chunks or [pa.array([], field.type)]
            column = pa.chunked_array([converted(chunk) for chunk in chunks])
            rows = rows.set_column(at, field.with_type(column.type), column)
    return rows


def _has(kind: pa.DataType, is_meant: Callable[[pa.DataType], bool]) -> bool:
    return _has(kind.value_type, is_meant) if _is_list(kind) else is_meant(kind)


def _is_list(kind: pa.DataType) -> bool:
    is_view = kinds.is_list_view(kind) or kinds.is_large_list_view(kind)
    is_plain = kinds.is_list(kind) or kinds.is_large_list(kind)
    return bool(is_view or is_plain or kinds.is_fixed_size_list(kind))


def _list(values: pa.Array, converted: Callable[[pa.Array], pa.Array]) -> pa.Array:
    # Built anew, not cast: no cast converts the members of list views.
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    mask = values.is_null() if values.null_count else None
    return pa.LargeListArray.from_arrays(offsets, converted(values.flatten()), mask=mask)
