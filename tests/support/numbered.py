"""Rows by number without a table behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.storage.row_space import FragmentState
from omnigraph_core.topology.row_numbers import RowNumbers, numbered_anew

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.storage.dataset import Table


def all_rows(count: int) -> RowNumbers:
    """So many rows, each with its place for a number."""
    return numbered_anew(_nothing, (_fragment(count),) if count else ())


def rows_but(count: int, gaps: Sequence[int]) -> RowNumbers:
    """The same after some of them were deleted."""
    whole = all_rows(count)
    left = FragmentState(0, ("0.lance",), "1-1", count - len(gaps))
    return RowNumbers(whole.numbering, (left,), whole.stretches, np.array(gaps, np.int32))


def _fragment(count: int) -> FragmentState:
    return FragmentState(0, ("0.lance",), None, count)


def _nothing() -> Table:
    raise AssertionError("rows that nobody has deleted are found without reading")
