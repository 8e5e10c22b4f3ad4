"""What images tell of the steps between them: snapshots come in, a claim about rows goes out.

Nothing is read. Commits of an image follow each other, and every change of a table takes the next
number of its counter: one number more is one step, and the entry says of what kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.manifest.image import TableOperation

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot

_PUTTING: Final = frozenset({TableOperation.APPEND, TableOperation.UPSERT})
"""Steps after which every id that was there still is."""


def has_only_put(earlier: Snapshot, later: Snapshot, before: TableEntry, after: TableEntry) -> bool:
    """Whether a table is known to have every id that it had; False says nothing.

    Args:
        earlier, later: as commits made them.
        before, after: the table in each.
    """
    head = earlier.commit.graph_commit_id
    return (
        after.operation in _PUTTING
        and (before.table_key, before.location) == (after.table_key, after.location)
        and before.table_version + 1 == after.table_version
        and any(commit.graph_commit_id == head for commit in later.image.commits)
    )
