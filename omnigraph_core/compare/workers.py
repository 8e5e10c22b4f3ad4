"""Who else may compare two versions of a table: views come in, which rows differ goes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.compare.changes import ChangedRows
    from omnigraph_core.compare.view import RowView


class Comparing(Protocol):
    """Compares tables, wherever that may be."""

    def changed_rows(
        self, before: RowView | None, after: RowView | None, columns: Sequence[str] | None = None
    ) -> ChangedRows:
        """What `compare.changes.changed_rows` finds; it need not know where other rows are."""
        ...
