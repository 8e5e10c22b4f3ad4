"""Kuzu: all operations; its text and vector indexes come with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kuzu

from benchmarks.read.peers.cypher import SEARCHES, STATEMENTS, TEXT_INDEX, VECTOR_INDEX, Cypher
from benchmarks.read.peers.fusion import fused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.read.data import Graph
    from benchmarks.read.operations import Ask


class Kuzu(Cypher):
    def __init__(self, _graph: Graph, directory: Path) -> None:
        is_new = not directory.exists()
        super().__init__(kuzu, directory, {**STATEMENTS, **SEARCHES})
        for load, create in (TEXT_INDEX, VECTOR_INDEX):
            self.run(load)
            if is_new:
                self.run(create)

    @property
    def asks(self) -> Mapping[str, Ask]:
        asks = dict(super().asks)
        near, texts = asks["vector_index"], asks["bm25_top"]
        return {**asks, "hybrid_top": lambda case: fused(near(case), texts(case))}
