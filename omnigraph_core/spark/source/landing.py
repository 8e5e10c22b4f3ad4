"""Parts that tasks have left come in, one commit goes out: an ordinary load with all its checks.

Rows are named by the partition they were in. The parts are Parquet files that every machine can
open, so a load by many executors takes the same sources.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.engine.writes import load_options, load_sources
from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.source.digest import join_hashes
from omnigraph_core.storage.inputs import find_object, is_object_address
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.sources import Format, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.spark.source.options import WriteOptions
    from omnigraph_core.spark.source.writer import Written
    from omnigraph_core.storage.inputs import ObjectFile
    from omnigraph_core.storage.scratch import Scratch
    from omnigraph_core.write.load_model import LoadOptions, LoadResult


def check_columns(options: WriteOptions, schema: pa.Schema) -> None:
    """Refuse what can be refused before any row is there: the branch, the type, the columns.

    Raises:
        DataError: every column that the type cannot take.
        NotFoundError: no such graph or branch.
        PolicyDenied: the actor may not write there.
    """
    with options.graph.open() as graph:
        dry_run(graph, {options.type_name: schema}, _load_options(options))


def dry_run(graph: Omnigraph, schemas: Mapping[str, pa.Schema], options: LoadOptions) -> None:
    """Load nothing into types, by columns: refuses what a load of rows would refuse for them.

    Raises:
        DataError, NotFoundError, PolicyDenied: as for `check_columns`.
    """
    nothing = [
        Source(schema.empty_table(), Format.ARROW, None, name, has_decimals=True)
        for name, schema in schemas.items()
    ]
    load_sources(graph, nothing, replace(options, is_dry_run=True))


def land(options: WriteOptions, written: Sequence[Written], scratch: Scratch) -> LoadResult | None:
    """Load what all partitions have left with one commit; None if there are no rows.

    Raises:
        DataError: rows break a rule; carries all of them.
        ConflictError: others changed the branch meanwhile.
        ConfigError: there are no rows to overwrite a type with.
    """
    sources = sources_of(options.type_name, written, scratch, options.mode)
    if not sources:
        return None
    with options.graph.open() as graph:
        return load_sources(graph, sources, _load_options(options))


def sources_of(
    type_name: str,
    written: Sequence[Written],
    scratch: Scratch,
    mode: LoadMode,
    *,
    name_before: str = "",
) -> list[Source]:
    """The parts of all partitions, as sources of a load.

    Args:
        name_before: what their names in messages begin with.

    Raises:
        ConfigError: there are no rows to overwrite a type with.
    """
    named = [
        (f"{name_before}partition {partition}" + (f", part {place}" if place > 1 else ""), name)
        for partition, message in enumerate(written)
        for place, name in enumerate(message.parts, 1)
    ]
    if not named and mode is LoadMode.OVERWRITE:
        raise ConfigError(
            f"there are no rows: overwriting with nothing would empty {type_name}",
            hint="delete rows with a mutation, if that is meant",
        )
    row_hash = join_hashes(item.row_hash for item in written)
    digest = hashlib.sha256(f"{type_name}:{row_hash}".encode()).digest()
    return [
        # Spark has no unsigned integers: what was read from a graph comes back as decimals.
        Source(
            _file("/".join(scratch.address(name))),
            Format.PARQUET,
            told,
            type_name,
            digest=b"" if at else digest,  # all rows together, whatever parts they came in
            has_decimals=True,
        )
        for at, (told, name) in enumerate(named)
    ]


def _file(address: str) -> ObjectFile | Path:
    return find_object(address) if is_object_address(address) else Path(address)


def _load_options(options: WriteOptions) -> LoadOptions:
    return load_options(
        options.branch,
        mode=options.mode,
        embed=options.embed,
        if_commit=options.if_commit,
        idempotency_key=options.idempotency_key,
        actor=options.graph.actor,
    )
