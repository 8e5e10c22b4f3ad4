"""Views of tables as small values that another process opens the same rows by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.compare.view import RowView, StoredColumn
from omnigraph_core.storage.places import TablePlace, shared_store
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class Job:
    """What every task of one merge or diff works by."""

    root: str
    """The address of the graph."""
    id: str
    portion_rows: int
    """Rows that one task has to do with, about."""

    @property
    def scratch(self) -> Scratch:
        return Scratch(shared_store(self.root), self.id)


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """A version of a table, and how its rows are seen."""

    place: TablePlace
    type: NodeType | EdgeType
    schema: pa.Schema
    sources: tuple[tuple[str | None, pa.Array | None], ...]
    """Per column the stored one, and what stands for null as an array of one."""

    @classmethod
    def of(cls, view: RowView) -> ViewPlace:
        sources = []
        for column in view.columns:
            stored = view.stored(column)
            fill = None if stored.fill is None else pa.repeat(stored.fill, 1)
            sources.append((stored.name, fill))
        return cls(TablePlace.of(view.table), view.type, view.schema, tuple(sources))

    def open(self) -> RowView:
        """
        Raises:
            ObjectNotFound: the version is gone.
        """
        sources = {
            column: StoredColumn(name, None if fill is None else fill[0])
            for column, (name, fill) in zip(self.schema.names, self.sources, strict=True)
        }
        return RowView(self.place.open(), self.type, self.schema, sources)


def place_of(view: RowView | None) -> ViewPlace | None:
    return None if view is None else ViewPlace.of(view)


def opened(place: ViewPlace | None) -> RowView | None:
    return None if place is None else place.open()
