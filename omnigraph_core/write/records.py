"""From input to typed rows: sources in, batches out, every malformed record reported and left out.

Batches come as they are read, so that memory holds a few of them whatever the size of the input.
Rows of one type keep the order of the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.violations import Rule
from omnigraph_core.write.digest import BROKEN_FILE
from omnigraph_core.write.intake import Intake
from omnigraph_core.write.jsonl import raw_lines, read_jsonl
from omnigraph_core.write.sources import Format
from omnigraph_core.write.tabular import raw_rows, read_tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import Batch, Places
    from omnigraph_core.write.sources import Source


def read_batches(
    sources: Sequence[Source],
    catalog: Catalog,
    places: Places,
    violations: Violations,
    *,
    on_read: Callable[[int], None] | None = None,
    on_refused: Callable[[Batch], None] | None = None,
    only: Collection[str] | None = None,
) -> Iterator[Batch]:
    """The rows of all sources, in order.

    Args:
        on_read: told the number of records looked at since it was told last.
        on_refused: told what can be read of records that were reported, with nulls for the rest.
        only: table keys; records of other types are passed over.
    """
    for index, source in enumerate(sources):
        intake = Intake(index, source, catalog, places, violations, on_read, on_refused, only)
        read = read_jsonl if source.format is Format.JSONL else read_tabular
        try:
            yield from read(intake)
        except BROKEN_FILE as problem:
            intake.report(Rule.RECORD, None, f"cannot be decompressed: {problem}")


def raw_records(source: Source, lines: Collection[int]) -> Iterator[tuple[int, str]]:
    """The original text of the records at given places; rows of tabular data as JSON objects."""
    raw = raw_lines if source.format is Format.JSONL else raw_rows
    return raw(source, lines)
