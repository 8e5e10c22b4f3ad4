"""A graph of people, and a server of this process that serves it to one module of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.processes import ROOT
from tests.support.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.server import Client

FIXTURES = ROOT / "tests" / "fixtures"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """Four persons, two companies, three who know each other, two who work."""
    root = tmp_path_factory.mktemp("served") / "people"
    graph = Omnigraph.init(str(root), (FIXTURES / "schemas" / "people.pg").read_text())
    graph.load(FIXTURES / "data" / "people.jsonl")
    return graph


@pytest.fixture(scope="module")
def open_server(people: Omnigraph) -> Iterator[Client]:
    """A server without tokens."""
    with serving(people.uri) as client:
        yield client
