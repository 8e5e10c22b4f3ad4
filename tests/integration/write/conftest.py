"""The graph most tests of writes begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.loading import small_graph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    """Three parts, two bins and a note; one bin holds part `a`, and the note needs it."""
    return small_graph(tmp_path)
