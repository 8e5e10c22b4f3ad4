"""Who else may do the part of a merge that grows with its rows: three views in, a decision out.

What is decided about which row is the same wherever it is decided. Nothing that is staged is
visible, so the work may be done anywhere and lost at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from omnigraph_core.compare.workers import Comparing

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.row_merge import MergedViews, RowMerge
    from omnigraph_core.merge.undecided import Undecided
    from omnigraph_core.storage.dataset import Table


class MergeWorkers(Comparing, Protocol):
    """Compares, decides and writes rows of one table after another."""

    def merge_rows(
        self,
        label: str,
        views: MergedViews,
        options: MergeOptions,
        *,
        undecided: Undecided | None = None,
        keep_ids: Callable[[int], bool] | None = None,
    ) -> RowMerge:
        """What `merge.rows.merge_rows` decides."""
        ...

    def stage_rows(self, merge: RowMerge, table: Table) -> Table | None:
        """What `merge.stage_rows.stage_rows` stages."""
        ...
