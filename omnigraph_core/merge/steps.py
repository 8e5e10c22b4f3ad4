"""What images tell of the steps between them: snapshots come in, a claim about rows goes out.

Commits of an image follow each other, and every change of a table takes the next number of its
counter: one number more is one step, and the entry says of what kind. Of several steps the images
between are read, if that is worth it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import SnapshotNotFound
from omnigraph_core.history.snapshots import state_at_commit
from omnigraph_core.manifest.image import TableOperation

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import GraphCommit, TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot

_PUTTING: Final = frozenset(
    {
        TableOperation.APPEND,
        TableOperation.UPSERT,
        TableOperation.COMPACTION,
        TableOperation.INDEX,
    }
)
"""Steps after which every id that was there still is."""
_IMAGE_REQUESTS: Final = 4
"""That reading an image takes, at most."""


class Steps:
    """The way from one state to a later one of the same line, as commits made them."""

    def __init__(self, context: GraphContext, earlier: Snapshot, later: Snapshot) -> None:
        self._context = context
        self._earlier = earlier
        self._later = later

    def keep_ids(self, before: TableEntry, after: TableEntry, *, worth: int) -> bool:
        """Whether a table is known to have every id that it had; False says nothing.

        Args:
            before, after: the table at both ends.
            worth: requests that may be spent to find out.
        """
        steps = after.table_version - before.table_version
        between = self._between
        if between is None or steps < 1 or not _is_put(before, after):
            return False
        if steps == 1:
            return True
        is_dear = "_tables" not in self.__dict__ and len(between) * _IMAGE_REQUESTS >= worth
        if is_dear or self._tables is None:
            return False
        found = [tables.get(after.table_key) for tables in self._tables]
        known = {entry.table_version for entry in found if entry and _is_put(before, entry)}
        return known >= set(range(before.table_version + 1, after.table_version))

    @cached_property
    def _between(self) -> tuple[GraphCommit, ...] | None:
        """The commits between; None if nobody knows, or the later state does not follow."""
        commits = self._later.image.commits
        ids = [commit.graph_commit_id for commit in commits]
        head = self._earlier.commit.graph_commit_id
        return commits[ids.index(head) + 1 : -1] if head in ids else None

    @cached_property
    def _tables(self) -> tuple[dict[str, TableEntry], ...] | None:
        """The tables after each of these commits; None if one is gone."""
        try:
            states = [state_at_commit(self._context.store, item) for item in self._between or ()]
        except SnapshotNotFound:
            return None
        return tuple(dict(state.snapshot.tables) for state in states)


def _is_put(before: TableEntry, after: TableEntry) -> bool:
    is_same_table = (before.table_key, before.location) == (after.table_key, after.location)
    return is_same_table and after.operation in _PUTTING
