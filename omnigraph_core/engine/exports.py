"""Exports of a snapshot that stays readable until the last byte is out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.protection import hold
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.write import export, export_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.export_parquet import ExportedFile

_LASTING: Final = timedelta(days=1)
"""How long cleanup spares what is exported."""


def stream_jsonl(
    context: GraphContext, snapshot: Snapshot, types: Sequence[str], table_keys: Sequence[str]
) -> Iterator[bytes]:
    """Chunks of whole lines. Names are checked now, rows are read as chunks are asked for.

    Raises:
        ConfigError: no such type or table.
    """
    selected = _selected(snapshot, types, table_keys)
    return _stream(context, snapshot, selected)


def write_parquet(
    context: GraphContext,
    snapshot: Snapshot,
    types: Sequence[str],
    table_keys: Sequence[str],
    directory: Path,
) -> tuple[ExportedFile, ...]:
    """One file per type.

    Raises:
        ConfigError: no such type or table.
        ConfigError: the directory cannot be written to.
    """
    selected = _selected(snapshot, types, table_keys)
    with hold(context.store, snapshot, purpose="export", lasting=_LASTING):
        return export_parquet.export_parquet(selected, _opener(context, snapshot), directory)


def _selected(
    snapshot: Snapshot, types: Sequence[str], table_keys: Sequence[str]
) -> tuple[GraphType, ...]:
    catalog = accepted_catalog(snapshot.schema)
    return export.select_tables(catalog, types=types, table_keys=table_keys)


def _stream(
    context: GraphContext, snapshot: Snapshot, selected: Sequence[GraphType]
) -> Iterator[bytes]:
    with hold(context.store, snapshot, purpose="export", lasting=_LASTING):
        yield from export.export_jsonl(selected, _opener(context, snapshot))


def _opener(context: GraphContext, snapshot: Snapshot) -> Callable[[str], Table]:
    def open_table(table_key: str) -> Table:
        entry = snapshot.table(table_key)
        return context.table(entry.location, entry.physical_version)

    return open_table
