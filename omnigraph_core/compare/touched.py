"""What a side did to the rows of a base, told by places: two views come in, its own rows go out.

A row that both have at places that correspond is untouched, and one that is at no such place was
replaced or deleted. Of the base nothing is read for that, of the side the ids of its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import MISSING, stored_otherwise
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.version_rows import match_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.storage.version_rows import OwnRows, RowMatch


def touched_rows(before: RowView, after: RowView) -> TouchedRows | None:
    """What became of the rows of the earlier version; None where places alone do not tell.

    They do not where a column of rows that stayed was stored anew.
    """
    match = match_rows(before.table, after.table)
    columns = [name for name in after.columns if name != "id"]
    if stored_otherwise(before, after, match, columns):
        return None
    return TouchedRows(before, after, match)


@dataclass(frozen=True)
class TouchedRows:
    """The rows that a side has written, and the places of the base's rows that it has not."""

    base: RowView
    side: RowView
    match: RowMatch
    known: pa.Table | None = None
    """Ids and addresses of the rows written, if they were read before, or of some of them if no
    others are asked for."""

    def __len__(self) -> int:
        return self.gone.count + self.written.count

    @property
    def gone(self) -> OwnRows:
        """The base's rows that were replaced or deleted."""
        return self.match.before_own

    @property
    def written(self) -> OwnRows:
        """The side's rows that are new, or in the place of such."""
        return self.match.after_own

    @cached_property
    def rows(self) -> pa.Table:
        """The ids of the rows written, and where they are."""
        return self.columns(("id",)) if self.known is None else self.known

    @property
    def ids(self) -> pa.ChunkedArray:
        return self.rows.column("id")

    @cached_property
    def places(self) -> np.ndarray:
        found: np.ndarray = self.rows.column(ADDRESS).to_numpy()
        return found

    def columns(self, names: Sequence[str]) -> pa.Table:
        """These columns of the rows written, ADDRESS last."""
        return own_rows(self.side, self.written, names)

    @cached_property
    def gone_places(self) -> np.ndarray:
        """Where the rows that were replaced or deleted are in the base, ascending."""
        return self.match.before_places()

    @cached_property
    def deleted_ids(self) -> pa.Array:
        """Ids of the base's rows that the side has not: reads the ids of those that are gone."""
        ids = self.base.take(self.gone_places, ["id"]).column("id")
        is_written = pc.is_in(ids, value_set=self.ids)
        return ids.filter(pc.invert(is_written)).combine_chunks()

    def where(self, ids: pa.StringArray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether rows were touched, and where they are now; MISSING for those that are not there.

        Args:
            before: where they are in the base, MISSING for those that it has not.
        """
        is_old = before != MISSING
        places = np.full(len(before), MISSING)
        places[is_old] = self.match.to_after(before[is_old])
        lost = np.flatnonzero(places == MISSING)
        found = pc.index_in(ids.take(pa.array(lost)), value_set=self.ids)
        is_found = found.is_valid().to_numpy(zero_copy_only=False)
        places[lost[is_found]] = self.places[found.drop_null().to_numpy()]
        is_touched = np.zeros(len(before), np.bool_)
        is_touched[lost] = is_found | is_old[lost]
        return is_touched, places


def own_rows(view: RowView, own: OwnRows, columns: Sequence[str]) -> pa.Table:
    """These columns of rows that another version does not share, ADDRESS last."""
    names = tuple(columns)
    fields = [view.schema.field(name) for name in names]
    schema = pa.schema([*fields, pa.field(ADDRESS, pa.uint64())])
    read = view.iter_own(own, names) if own.count else ()
    return pa.concat_tables([schema.empty_table(), *(rows.cast(schema) for rows in read)])
