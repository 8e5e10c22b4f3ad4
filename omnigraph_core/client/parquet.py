"""Parquet files of a graph behind a server: its export comes in, a file per type goes out.

The files have the columns, types and names that an export of a graph at hand writes. A file appears
under its name when it is complete, and none does before all rows have arrived.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.violations import Violations
from omnigraph_core.write import export_parquet
from omnigraph_core.write.batches import Places
from omnigraph_core.write.export import select_tables
from omnigraph_core.write.intake import Intake
from omnigraph_core.write.jsonl import read_jsonl
from omnigraph_core.write.sources import Format, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.batches import Batch
    from omnigraph_core.write.export_parquet import ExportedFile


def write_parquet(
    lines: Iterable[bytes],
    schema: AcceptedSchema,
    directory: Path,
    *,
    types: Sequence[str],
    table_keys: Sequence[str],
) -> tuple[ExportedFile, ...]:
    """Write exported lines as one file per type.

    Raises:
        ConfigError: no such type or table, or the directory cannot be written.
    """
    catalog = accepted_catalog(schema)
    selected = select_tables(catalog, types=types, table_keys=table_keys)
    with tempfile.TemporaryDirectory(prefix="omnigraph-") as spool:
        path = Path(spool) / "export.jsonl"
        try:
            with path.open("wb") as file:
                file.writelines(lines)
        except OSError as problem:
            raise ConfigError(f"cannot write {path}: {problem.strerror or problem}") from problem
        rows = ((batch.type, batch.rows) for batch in _batches(path, catalog))
        return export_parquet.write_parquet(selected, rows, directory)


def _batches(path: Path, catalog: Catalog) -> Iterator[Batch]:
    problems = Violations()
    intake = Intake(0, Source(path, Format.JSONL), catalog, Places(), problems)
    yield from read_jsonl(intake)
    if problems.total:
        first = problems.listed[0].render()
        raise StorageError(f"the export of the server cannot be read: {first}")
