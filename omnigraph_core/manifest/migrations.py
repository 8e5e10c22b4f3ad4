"""Catalogs of older formats: rows as they were written come in, rows of the current format go out.

Only in memory: the next publish writes the current format in the same compare-and-swap as its
commit, so there is no separate migration that could stop half-way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.constants import INTERNAL_SCHEMA_VERSION
from omnigraph_core.errors import FormatTooNew
from omnigraph_core.manifest.fields import damaged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STAMP_KEY: Final = "omnigraph:internal_schema_version"
PRIMARY_KEY_COLUMN: Final = "object_id"
PRIMARY_KEY: Final = {b"lance-schema:unenforced-primary-key": b"true"}

_STAMP: Final = re.compile(rb"[1-9][0-9]{0,8}")
_UNSTAMPED: Final = 1


def upgrade_rows(rows: pa.Table, *, where: str) -> pa.Table:
    """The same catalog in the current format; unchanged if it is.

    Raises:
        FormatTooNew: a newer release wrote it.
        StorageError: its format cannot be told.
    """
    current = INTERNAL_SCHEMA_VERSION.value
    stamp = stamp_of(rows.schema, where)
    if stamp > current:
        raise FormatTooNew(
            f"the catalog at {where} has format {stamp}; this release reads up to {current}",
            hint="upgrade omnigraph first",
        )
    for version in range(stamp, current):
        rows = _stamped(STEPS[version](rows, where), version + 1)
    return rows


def stamp_of(schema: pa.Schema, where: str) -> int:
    """The format a catalog was written in; the first one carried no stamp.

    Raises:
        StorageError: the stamp is no number.
    """
    stamp = (schema.metadata or {}).get(STAMP_KEY.encode())
    if stamp is None:
        return _UNSTAMPED
    if not _STAMP.fullmatch(stamp):
        raise damaged(where, f"{STAMP_KEY} is {stamp.decode(errors='replace')!r:.60}, not a number")
    return int(stamp)


def _annotate_primary_key(rows: pa.Table, where: str) -> pa.Table:
    """1 → 2: `object_id` is marked as the primary key."""
    (mark,) = PRIMARY_KEY
    fields = list(rows.schema)
    marked = [item.name for item in fields if mark in (item.metadata or {})]
    if PRIMARY_KEY_COLUMN not in rows.schema.names:
        raise damaged(where, f"there is no column {PRIMARY_KEY_COLUMN}")
    if any(name != PRIMARY_KEY_COLUMN for name in marked):
        raise damaged(where, f"its primary key is {', '.join(marked)}, not {PRIMARY_KEY_COLUMN}")
    at = rows.schema.get_field_index(PRIMARY_KEY_COLUMN)
    fields[at] = fields[at].with_metadata({**(fields[at].metadata or {}), **PRIMARY_KEY})
    return _with_schema(rows, pa.schema(fields, metadata=rows.schema.metadata))


STEPS: Final[Mapping[int, Callable[[pa.Table, str], pa.Table]]] = {1: _annotate_primary_key}
"""Format → the step to the next one. Doing a step twice does no harm."""


def _stamped(rows: pa.Table, version: int) -> pa.Table:
    metadata = {**(rows.schema.metadata or {}), STAMP_KEY.encode(): str(version).encode()}
    return _with_schema(rows, rows.schema.with_metadata(metadata))


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays(rows.columns, schema=schema)
