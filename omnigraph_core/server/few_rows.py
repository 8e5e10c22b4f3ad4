"""A few rows as JSON: a small table comes in, the same text goes out as Arrow's kernels would make.

Calling a kernel takes longer than writing a few values. Only values that Python writes just as the
kernels do are written here; for all others there is no text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.schema.arrow import is_companion

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_ROWS: Final = 64
MOST_BYTES: Final = 65_536
_SMALLEST, _LARGEST = 1e-4, 1e9
"""Between these both write a float without an exponent."""


def try_few_rows(rows: pa.Table) -> bytes | None:
    """The objects of all rows with commas between them; None if that is not for here."""
    if rows.num_rows > MOST_ROWS or rows.nbytes > MOST_BYTES or not _is_plain(rows.schema):
        return None
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    for name, kind in zip(rows.column_names, rows.schema.types, strict=True):
        if pa.types.is_float64(kind) and not _are_short(columns[name]):
            return None
    names = tuple(columns)
    objects = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps(objects, ensure_ascii=False, separators=(",", ":"))[1:-1].encode()


def _is_plain(schema: pa.Schema) -> bool:
    return all(
        field.name.isascii()
        and field.name.isprintable()
        and not is_companion(field.name)
        and (
            pa.types.is_string(field.type)
            or pa.types.is_integer(field.type)
            or pa.types.is_boolean(field.type)
            or pa.types.is_float64(field.type)
        )
        for field in schema
    )


def _are_short(values: Iterable[float | None]) -> bool:
    return all(value is None or value == 0 or _SMALLEST < abs(value) < _LARGEST for value in values)
