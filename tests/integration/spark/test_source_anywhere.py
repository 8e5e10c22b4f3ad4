"""The data source behaves on a cluster and behind Connect as it does on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support import source_worlds as jobs
from tests.support.source_worlds import SCHEMA, small_graph, stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.spark import Driver


ON_THE_CLUSTER = pytest.param(
    "cluster",
    marks=pytest.mark.long("test_query_places reads on the cluster"),
)


@pytest.mark.parametrize("driver", [ON_THE_CLUSTER, "connect"], indirect=True)
def test_reading_and_writing(driver: Driver, tmp_path: Path) -> None:
    small = small_graph(tmp_path / "small")
    found = driver.call(jobs.read_all, small.uri)
    assert found["commit"] == small.head_commit_id_for_branch()
    for key in ("node:Thing", "node:Place", "edge:Lies"):
        expected = stored(small, key)
        for row in expected.values():
            row.pop("photo", None)
        assert found[key.replace(":", "_")] == expected
    assert found["joined"] == [["least", "attic"], ["most", "cellar"]]

    copy = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    assert driver.call(jobs.copy_all, small.uri, copy.uri) == {"Thing": 4, "Place": 2}
    for key in ("node:Thing", "node:Place"):
        assert stored(copy, key) == stored(small, key)
    commits = copy.list_commits()
    assert [commit.actor_id for commit in commits] == ["ada", "ada", None]
    said = driver.call(jobs.refused, copy.uri)
    for words in (
        "row 1: @unique violation on Thing.sku: key 'most' already exists",
        "row 2: invalid enum value 'screw' on Thing.kind",
        "row 3: @unique violation on Thing.sku: key 'new' was given before",
        "hint: nothing was written",
    ):
        assert words in said
    assert copy.list_commits() == commits
    assert not list((tmp_path / "graph" / "_scratch").rglob("rows-*"))
