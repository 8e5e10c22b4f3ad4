"""Graphs made once and copied for each case: nothing in them says where they are."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.faults.operations import GRAPHS
from tests.faults.states import state_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.operations import Operation


class Copies:
    """Copies of prepared graphs, and the states that operations lead to when nothing fails."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0
        self._states: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(self, graph: str) -> str:
        """A fresh copy of a prepared graph; its address."""
        original = self._directory / graph
        if not original.exists():
            begun = self._directory / f"begun {graph}"
            GRAPHS[graph](str(begun))
            begun.rename(original)
        self._made += 1
        copied = self._directory / f"copy {self._made}"
        shutil.copytree(original, copied)
        return str(copied)

    def state_after(self, operation: Operation, *words: str) -> dict[str, Any]:
        """The state once the operation was done with each word, in a run that nothing disturbs."""
        key = (operation.name, *words)
        if key not in self._states:
            address = self.of(operation.graph)
            for word in words:
                operation.run(Omnigraph.open(address), word)
            self._states[key] = state_of(address)
        return self._states[key]


@pytest.fixture(scope="package", autouse=True)
def embeddings() -> Iterator[None]:
    """Vectors are made of nothing but the text, here and in the processes that are started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
        yield


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(tmp_path_factory.mktemp("graphs"))
