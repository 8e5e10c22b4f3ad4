"""The actor maps beside the commit log and the run registry: who made what, one row each.

A map only repeats what its log says, for readers that look there. It is brought up to date after
every append; a crash in between is mended by the next one, and no row is ever written twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import PublishContention
from omnigraph_core.history.appends import append_chosen, present, without
from omnigraph_core.storage.log import read

if TYPE_CHECKING:
    from omnigraph_core.storage.log import Log


def project_actors(
    log: Log,
    path: str,
    key: str,
    arrived: pa.Table,
    *,
    expected: int,
    where: pa.Expression | None = None,
) -> None:
    """Bring the map at `path` up to date with a log that has just been appended to.

    Args:
        key: the column that identifies what was made, in the log and in the map.
        arrived: rows the log has that the map may lack.
        expected: how many rows the map has when it is complete.
        where: which rows of the log count, if not all: at most one for each key.
    """
    is_named = pc.field("actor_id").is_valid()
    counted = is_named if where is None else is_named & where
    if expected == 0:
        return  # the map is made when there is an actor
    schema = _schema(key)
    candidates = arrived.select(schema.names).filter(is_named).cast(schema)

    def lacking(actors: Log) -> tuple[pa.Table, None]:
        known = present(actors, key, candidates[key].to_pylist())
        fresh = without(candidates, key, known)
        # More than expected: others have brought it further than this version of the log.
        if actors.count_rows() + fresh.num_rows >= expected:
            return fresh, None
        every = read(log, schema.names, where=counted).cast(schema)
        return without(every, key, present(actors, key, every[key].to_pylist())), None

    try:
        append_chosen(log.store, path, schema, lacking)
    except PublishContention:
        return  # the others bring the same map up to date


def _schema(key: str) -> pa.Schema:
    return pa.schema(
        [
            pa.field(key, pa.string(), nullable=False),
            pa.field("actor_id", pa.string(), nullable=False),
            pa.field("created_at", pa.timestamp("us"), nullable=False),
        ]
    )
