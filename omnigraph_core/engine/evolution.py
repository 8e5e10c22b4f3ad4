"""The schema of a graph as `Omnigraph` offers it: shown, planned and applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext


class Evolution:
    """What changes the schema of a graph."""

    _context: GraphContext
