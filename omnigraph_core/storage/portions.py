"""A table by groups of its fragments, for several readers to share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.storage.blob_columns import plain_rows
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from omnigraph_core.storage.dataset import Table


def fragment_portions(table: Table, most_rows: int) -> Iterator[tuple[int, ...]]:
    """The ids of the fragments in groups of at most so many rows, or one fragment."""
    group: list[int] = []
    rows = 0
    for fragment in current_fragments(table):
        if group and rows + fragment.num_rows > most_rows:
            yield tuple(group)
            group, rows = [], 0
        group.append(fragment.id)
        rows += fragment.num_rows
    if group:
        yield tuple(group)


def read_fragments(
    table: Table, fragments: Sequence[int], columns: Sequence[str], *, has_addresses: bool = False
) -> pa.Table:
    """The rows of some fragments, in order.

    Args:
        has_addresses: adds the column `lookup.ADDRESS`, last.
    """
    with translated("reading", table.uri):
        wanted = set(fragments)
        chosen = [part for part in table.dataset.get_fragments() if part.fragment_id in wanted]
        rows = table.dataset.scanner(
            columns=list(columns),
            fragments=chosen,
            with_row_address=has_addresses,
            blob_handling="all_binary" if table.blobs_of(columns) else None,
        ).to_table()
    return plain_rows(rows, table.blobs_of(columns))
