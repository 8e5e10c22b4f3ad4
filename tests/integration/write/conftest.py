"""The graph most tests of writes begin with."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.write import export
from tests.support.exports import FULL, NOTE, SENSOR, WATCHES, Tables, note, sensor
from tests.support.loading import small_graph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    """Three parts, two bins and a note; one bin holds part `a`, and the note needs it."""
    return small_graph(tmp_path)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


@pytest.fixture
def full(tables: Tables) -> Tables:
    """A sensor with every value, one with none, notes and edges, in several fragments."""
    given = {name: value for name, (value, _) in FULL.items()}
    tables.append(SENSOR, [{"id": "full", **given, "place#origin": 7}])
    tables.append(SENSOR, [sensor("bare")])
    tables.append(NOTE, [note("n2", ""), note("n1")])
    watches = {"src": "full", "dst": "bare"}
    tables.append(WATCHES, [{"id": "e2", **watches, "weight": -0.0}, {"id": "e1", **watches}])
    return tables


@pytest.fixture
def pictured(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """A small blob, many that fit a few at a time, and one that is larger than what is held."""
    monkeypatch.setattr(export, "_BATCH_BYTES", 5_000)
    sizes = [1, *([1_000] * 30), 20_000, 1, 1]
    rows = [
        sensor(f"s{number:02d}", picture=random.Random(number).randbytes(size))
        for number, size in enumerate(sizes)
    ]
    tables.append(SENSOR, rows[::-1])
    return tables
