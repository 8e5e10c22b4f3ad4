"""A table brought into the shape of a later type: rows come in as stored, and go out as seen.

What `RowView` shows without writing anything is what the staged version holds; no row moves, so
addresses taken before hold after. Nobody sees the version until a catalog names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.compare.view import RowView
from omnigraph_core.storage.rearrange import WantedColumn, rearrange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.schema.reshape import ColumnSource, GraphType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.rearrange import WrittenColumns


def evolve_table(
    table: Table,
    after: GraphType,
    sources: Mapping[str, ColumnSource],
    *,
    done: WrittenColumns | None = None,
) -> Table | None:
    """The table with the columns of a type, staged; None where it has them already.

    Args:
        sources: where each column of the later table comes from, as `reshape` tells.
        done: what was written for earlier versions of the table, in the course of this change.

    Raises:
        InvariantBroken: a column cannot become what is wanted; rows were to be checked before.
    """
    view = RowView.of(table, after, sources)
    wanted = []
    for field in view.schema:
        stored = view.stored(field.name)
        wanted.append(WantedColumn(field, stored.name, stored.fill))
    return rearrange(table, wanted, done=done)
