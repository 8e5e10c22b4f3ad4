"""An empty table of parts, and one that holds a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.storage.staged import stage_append
from tests.support.parts import new_table, parts, present, rows

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table


@pytest.fixture
def empty(tmp_path: Path) -> Table:
    return new_table(tmp_path)


@pytest.fixture
def stocked(empty: Table) -> Table:
    """Parts 0 to 5 in two fragments."""
    table = empty
    for numbers in (range(3), range(3, 6)):
        table = present(stage_append(table, rows(parts(numbers))))
    return table
