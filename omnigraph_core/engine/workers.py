"""Who else may do the heavy part of maintenance: tables come in, the same staged anew go out.

Nothing that is staged is visible, so the work may be done anywhere and lost at any time. What is
published, and when, is decided by whoever asked for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.segments import IndexRequest

    Wanted: TypeAlias = tuple[Table, tuple[IndexRequest, ...]]
    """A table and the indexes it is to have."""
    Indexed: TypeAlias = tuple[Table, tuple[str, ...]]
    """The table with every index completed, and the names of those that were not."""


class Workers(Protocol):
    """Does the work on several tables; results are in the order of the tables."""

    def compact(self, tables: Sequence[Table]) -> list[Table | None]:
        """Each table in fewer and fuller files; None where nothing is gained."""
        ...

    def index(self, wanted: Sequence[Wanted]) -> list[Indexed]:
        """Each table with its indexes completed."""
        ...
