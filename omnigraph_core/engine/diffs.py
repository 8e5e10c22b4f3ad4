"""The comparing half of `Omnigraph`: diffs of snapshots and commits, and the feed of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext


class Diffs:
    """What differs between states of a graph."""

    _context: GraphContext
