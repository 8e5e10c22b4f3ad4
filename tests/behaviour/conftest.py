"""Every test of this directory runs on every way to reach a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from tests.behaviour.stock import SCHEMA, STOCK
from tests.support.ways import Place, Way, Ways

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.s3 import S3Server


@pytest.fixture(scope="session")
def ways(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Ways]:
    def s3_server() -> S3Server:
        return cast("S3Server", request.getfixturevalue("s3_server"))

    with Ways(tmp_path_factory.mktemp("ways"), s3_server) as ways:
        yield ways


ON_S3 = pytest.param(Way.S3, marks=pytest.mark.long("tests/contract shows what S3 changes"))


@pytest.fixture(scope="module", params=[Way.PATH, Way.HTTP, ON_S3])
def way(request: pytest.FixtureRequest) -> Way:
    return Way(request.param)


@pytest.fixture(autouse=True)
def _settings(way: Way, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ways.settings(way).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(way: Way, ways: Ways, _settings: None) -> Iterator[Place]:
    """A graph of the test's own with the stock in it."""
    place = ways.new(way, SCHEMA, STOCK)
    with place.graph, place.at_hand:
        yield place


@pytest.fixture
def graph(place: Place) -> Omnigraph:
    """The same graph, for tests that need no other view of it."""
    return place.graph


@pytest.fixture(scope="module")
def shared(way: Way, ways: Ways) -> Iterator[Place]:
    """A graph with the stock in it, for tests of a module that only read."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ways.settings(way).items():
            patch.setenv(name, value)
        place = ways.new(way, SCHEMA, STOCK)
    with place.graph, place.at_hand:
        yield place
