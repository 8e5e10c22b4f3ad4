"""The conditions on the far end of a traversal, asked of the nodes it leads to.

Few nodes are judged one by one. Once as many were asked about as matter, the whole table is judged,
and from then on the answer is looked up by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.exec.evaluate import truth
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.select import node_mask
from omnigraph_core.query.typed import All

if TYPE_CHECKING:
    import numpy as np

    from omnigraph_core.exec.context import Run
    from omnigraph_core.ir.nodes import Expand

_WHOLE_SHARE: Final = 4
"""Judging a table in one go costs about as much as judging this share of it row by row."""


class EndFilter:
    """Which nodes a traversal may lead to; asked many times in one run."""

    __slots__ = ("_asked", "_conditions", "_is_whole", "_mask", "_run", "_variable")

    def __init__(self, run: Run, op: Expand) -> None:
        self._run = run
        self._variable = op.dst_var
        self._conditions = op.dst_filters
        self._mask: np.ndarray | None = None
        self._is_whole = not op.dst_filters
        self._asked = 0

    @property
    def is_open(self) -> bool:
        """Every node is let through, as far as is known."""
        return self._is_whole and self._mask is None

    def keep(self, targets: np.ndarray) -> np.ndarray | None:
        """Which of these nodes pass; None if all do."""
        if not self._is_whole:
            self._asked += len(targets)
            if self._asked * _WHOLE_SHARE < self._run.dense(self._variable).count:
                some = Frame(len(targets), {self._variable: targets})
                return truth(self._run, All(self._conditions), some)
        mask = self.mask()
        return None if mask is None else mask.take(targets)

    def mask(self) -> np.ndarray | None:
        """Which nodes of the whole table pass; None if all do."""
        if not self._is_whole:
            self._mask = node_mask(self._run, self._variable, self._conditions)
            self._is_whole = True
        return self._mask
