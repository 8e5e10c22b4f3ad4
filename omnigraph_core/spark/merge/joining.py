"""What tasks have decided about ranges of ids, put together to the decision about a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.merge.properties import NOTHING_COMBINED, CombinedRows
from omnigraph_core.merge.row_merge import RowConflicts, RowMerge, RowWrites

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.compare.touched import TouchedRows
    from omnigraph_core.merge.row_merge import Counted, MergedViews
    from omnigraph_core.spark.merge.views import Job

PROPERTY: Final = "is "
"""Before names of properties; no name of a column begins so."""

_Parts = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Decided:
    """What a task decided about a range: where that is kept, and how much it is."""

    kept: str
    """The name of the object."""
    inserted: int
    updated: int
    resolved: int
    settled_ids: frozenset[str]
    properties: tuple[str, ...] | None
    """Those that rows were compared by; None where no rows were."""
    own_changes: int
    """Rows that the target has changed, where they were counted."""


def joined(
    job: Job,
    label: str,
    views: MergedViews,
    mine: TouchedRows | Counted,
    decided: Sequence[Decided],
) -> RowMerge:
    """The decision about a table; ranges are in the order of their ids."""
    parts = [job.scratch.read_tables(part.kept) for part in decided]
    taken, origins = _places(parts, "taken", "theirs"), _places(parts, "taken", "base")
    # Rows of the source are read in the order in which they are stored: each page once.
    order = np.argsort(taken, kind="stable")
    writes = RowWrites(
        taken=taken[order],
        origins=origins[order],
        combined=_combined(parts),
        leaving=_places(parts, "leaving", "ours"),
        deleted_ids=_ids(parts, "deleted"),
        inserted=sum(part.inserted for part in decided),
        updated=sum(part.updated for part in decided),
    )
    return RowMerge(
        label=label,
        base=views.base,
        ours=views.ours,
        theirs=views.theirs,
        writes=writes,
        conflicts=_conflicts(parts, decided),
        resolved=sum(part.resolved for part in decided),
        settled_ids=frozenset().union(*(part.settled_ids for part in decided)),
        mine=mine,
        refused=_ids(parts, "refused"),
    )


def _conflicts(parts: Sequence[_Parts], decided: Sequence[Decided]) -> RowConflicts:
    named = next((part.properties for part in decided if part.properties is not None), None)
    properties = None
    if named is not None:
        properties = {name: _marks(parts, "conflicts", name) for name in named}
    return RowConflicts(
        ids=_ids(parts, "conflicts"),
        decisions=_column(parts, "conflicts", "decision", np.zeros(0, np.uint8)),
        base=_places(parts, "conflicts", "base"),
        ours=_places(parts, "conflicts", "ours"),
        theirs=_places(parts, "conflicts", "theirs"),
        properties=properties,
    )


def _combined(parts: Sequence[_Parts]) -> CombinedRows:
    filled = [part["combined"] for part in parts if "combined" in part]
    if not filled:
        return NOTHING_COMBINED
    names = [name for name in filled[0].column_names if name.startswith(PROPERTY)]
    marks = [name.removeprefix(PROPERTY) for name in names]
    return CombinedRows(
        ours=_places(parts, "combined", "ours"),
        theirs=_places(parts, "combined", "theirs"),
        from_theirs={name: _marks(parts, "combined", name) for name in marks},
    )


def _places(parts: Sequence[_Parts], table: str, column: str) -> np.ndarray:
    return _column(parts, table, column, np.zeros(0, np.uint64))


def _marks(parts: Sequence[_Parts], table: str, name: str) -> np.ndarray:
    """Which rows something holds for; in a range that nobody asked about, for none."""
    found = []
    for part in parts:
        rows = part.get(table)
        if rows is not None:
            column = f"{PROPERTY}{name}"
            is_asked = column in rows.column_names
            none = np.zeros(rows.num_rows, np.bool_)
            found.append(rows.column(column).to_numpy() if is_asked else none)
    return np.concatenate([np.zeros(0, np.bool_), *found])


def _column(
    parts: Sequence[Mapping[str, pa.Table]], table: str, column: str, none: np.ndarray
) -> np.ndarray:
    found = [part[table].column(column).to_numpy() for part in parts if table in part]
    return np.concatenate([none, *found])


def _ids(parts: Sequence[_Parts], table: str) -> pa.StringArray:
    chunks = [chunk for part in parts if table in part for chunk in part[table].column("id").chunks]
    return pa.chunked_array(chunks, pa.utf8()).combine_chunks()
