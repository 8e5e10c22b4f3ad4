"""Merging as `Omnigraph` offers it: branches, single commits, and taking commits back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext


class Merging:
    """What brings the work of one branch, or one commit, to another."""

    _context: GraphContext
