"""Parts that tasks have left come in, one commit goes out: an ordinary load with all its checks.

Rows are named by the partition they were in. The parts are Parquet files that every machine can
open, so a load by many executors takes the same sources.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.engine.writes import load_options, load_sources
from omnigraph_core.errors import ConfigError
from omnigraph_core.storage.inputs import find_object, is_object_address
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.sources import Format, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from omnigraph_core.spark.source.options import WriteOptions
    from omnigraph_core.write.load_model import LoadOptions, LoadResult


@dataclass(frozen=True, slots=True)
class Part:
    """A Parquet file with rows of one partition; `place` counts the parts of that partition."""

    address: str
    partition: int
    place: int


def check_columns(options: WriteOptions, schema: pa.Schema) -> None:
    """Refuse what can be refused before any row is there: the branch, the type, the columns.

    Raises:
        DataError: every column that the type cannot take.
        NotFoundError: no such graph or branch.
        PolicyDenied: the actor may not write there.
    """
    nothing = Source(schema.empty_table(), Format.ARROW, None, options.type_name, has_decimals=True)
    with options.graph.open() as graph:
        load_sources(graph, [nothing], _load_options(options, is_dry_run=True))


def land(options: WriteOptions, parts: Sequence[Part], row_hash: int) -> LoadResult | None:
    """Load the parts with one commit; None if there are no rows.

    Args:
        row_hash: tells these rows from others, whatever parts they came in.

    Raises:
        DataError: rows break a rule; carries all of them.
        ConflictError: others changed the branch meanwhile.
        ConfigError: there are no rows to overwrite a type with.
    """
    if not parts:
        if options.mode is LoadMode.OVERWRITE:
            raise ConfigError(
                f"there are no rows: overwriting with nothing would empty {options.type_name}",
                hint="delete rows with a mutation, if that is meant",
            )
        return None
    digest = hashlib.sha256(f"{options.type_name}:{row_hash}".encode()).digest()
    sources = [_source(part, options.type_name, b"") for part in parts]
    sources[0] = _source(parts[0], options.type_name, digest)
    with options.graph.open() as graph:
        return load_sources(graph, sources, _load_options(options))


def _source(part: Part, type_name: str, digest: bytes) -> Source:
    is_object = is_object_address(part.address)
    data = find_object(part.address) if is_object else Path(part.address)
    name = f"partition {part.partition}" + (f", part {part.place}" if part.place > 1 else "")
    # Spark has no unsigned integers: what was read from a graph comes back as decimals.
    return Source(data, Format.PARQUET, name, type_name, digest=digest, has_decimals=True)


def _load_options(options: WriteOptions, *, is_dry_run: bool = False) -> LoadOptions:
    return load_options(
        options.branch,
        mode=options.mode,
        embed=options.embed,
        dry_run=is_dry_run,
        if_commit=options.if_commit,
        idempotency_key=options.idempotency_key,
        actor=options.graph.actor,
    )
