"""Ladybug: no text and no vector search, whose extensions are downloaded at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ladybug

from benchmarks.read.peers.cypher import STATEMENTS, Cypher

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.read.data import Graph


class Ladybug(Cypher):
    def __init__(self, _graph: Graph, directory: Path) -> None:
        super().__init__(ladybug, directory, STATEMENTS)
