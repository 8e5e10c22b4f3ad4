"""Appending to logs that several processes write: what is appended was decided on the version it
follows, so a check made while deciding (not there yet, still running) holds when it lands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import PublishContention
from omnigraph_core.manifest.retry import back_off
from omnigraph_core.storage.log import create_log, open_log, read, try_append

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from omnigraph_core.storage.log import Log
    from omnigraph_core.storage.session import Store

T = TypeVar("T")

_ATTEMPTS: Final = 32
"""One log serves every branch, so its writers meet more often than those of a catalog."""

_MAX_FILTERED: Final = 1000
"""Values a filter may list; reading the column is quicker for more."""


def append_chosen(
    store: Store, path: str, schema: pa.Schema, choose: Callable[[Log], tuple[pa.Table, T]]
) -> tuple[Log, T]:
    """Append the rows chosen on the newest version to exactly that version.

    Args:
        choose: the rows to append to a version, and what that means. Called again with a newer one
            whenever another writer was first. No rows leave the log as it is, or make an empty one.

    Returns:
        The log with the rows, and the meaning given to the choice that stands.

    Raises:
        PublishContention: other writers were first every time; nothing was written.
        StorageError: the store failed; the rows may or may not have been written.
    """
    for attempt in range(_ATTEMPTS):
        log = open_log(store, path) or create_log(store, path, schema)
        rows, meaning = choose(log)
        appended = try_append(log, rows) if rows.num_rows else log
        if appended is not None:
            return appended, meaning
        back_off(attempt)
    raise PublishContention(
        f"other writers were first on {path} in every attempt to append",
        hint="nothing was written; try again",
    )


def present(log: Log, column: str, values: Collection[str]) -> frozenset[str]:
    """Which of the values the column holds."""
    if not values:
        return frozenset()
    where = pc.field(column).isin(list(values)) if len(values) <= _MAX_FILTERED else None
    found = read(log, [column], where=where)[column].to_pylist()
    return frozenset(values).intersection(found)


def without(rows: pa.Table, column: str, values: Collection[str]) -> pa.Table:
    """The rows whose column holds none of the values."""
    return rows.filter(pc.invert(pc.is_in(rows[column], pa.array(values, pa.string()))))
