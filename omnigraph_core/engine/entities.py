"""One row of a table as JSON: what `entity_at` answers."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core import values

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table


def find_entity(table: Table, id: str) -> dict[str, object] | None:
    """The row of that id, or None."""
    # Lance translates no Arrow expression on a table that has unsigned columns.
    rows = table.read(where="`id` = '" + id.replace("'", "''") + "'")
    if rows.num_rows == 0:
        return None
    return {name: _json(column[0]) for name, column in zip(rows.column_names, rows, strict=True)}


def _json(value: pa.Scalar) -> object:
    if not value.is_valid:
        return None
    if pa.types.is_date64(value.type):  # Python's reading of it drops the time of day
        return values.to_json(value.cast(pa.timestamp("ms", "UTC")).as_py())
    if pa.types.is_list(value.type) or pa.types.is_fixed_size_list(value.type):
        return [_json(item) for item in value]
    plain = value.as_py()
    if isinstance(plain, bytes):
        return f"base64:{base64.b64encode(plain).decode()}"
    return values.to_json(plain)
