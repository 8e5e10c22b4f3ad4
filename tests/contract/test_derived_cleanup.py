"""Cleanup and derived files: they go after the table versions they were made from, nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.settings import CACHE_DIR
from omnigraph_core.storage.derived import DerivedFiles
from omnigraph_core.storage.objects import list_objects, put
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_overwrite
from tests.support.ageing import clean_up
from tests.support.graphs import BIN, PART, append_parts, ids, parts, publish

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.storage.dataset import Table

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")


@pytest.fixture(autouse=True)
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_DIR.name, str(tmp_path / "copies"))


def replace_parts(og: Omnigraph, ids: list[str], branch: str = "main") -> None:
    snapshot = og.snapshot(branch)
    staged = stage_overwrite(og.table(snapshot, PART), parts(ids))
    assert staged is not None
    publish(og, snapshot, {PART: staged}, TableOperation.OVERWRITE)


def table(og: Omnigraph, table_key: str = PART, branch: str = "main") -> Table:
    return og.table(og.snapshot(branch), table_key)


def derive(og: Omnigraph, key: str, *tables: Table) -> None:
    DerivedFiles(open_store(og.uri)).save("links", key, {"a": np.arange(9)}, {}, tables)


def derived(og: Omnigraph) -> list[str]:
    return [
        item.path.removeprefix("_derived/links/")
        for item in list_objects(open_store(og.uri), "_derived")
    ]


def test_files_go_after_the_versions_they_were_made_from(og: Omnigraph) -> None:
    for name in "abc":
        replace_parts(og, [name])
        derive(og, name, table(og, BIN), table(og))
    clean_up(og, keep=2)
    assert derived(og) == ["b.arrays", "c.arrays"]
    clean_up(og, keep=1)
    assert derived(og) == ["c.arrays"]
    assert ids(og, og.snapshot()) == ["c"]


def test_versions_of_branches_and_tags_are_kept(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    derive(og, "tagged", table(og))
    og.tag_create("v1")
    og.branch_create("review")
    append_parts(og, ["b"], "review")
    derive(og, "review", table(og, branch="review"))
    for name in "cd":
        replace_parts(og, [name])
    clean_up(og, keep=1)
    assert derived(og) == ["review.arrays", "tagged.arrays"]


def test_a_preview_and_young_files_change_nothing(og: Omnigraph) -> None:
    replace_parts(og, ["a"])
    derive(og, "a", table(og))
    replace_parts(og, ["b"])
    clean_up(og, keep=1, is_preview=True)
    assert derived(og) == ["a.arrays"]
    clean_up(og, keep=1, grace=timedelta(hours=1), is_aged=False)
    assert derived(og) == ["a.arrays"]
    clean_up(og, keep=1)
    assert derived(og) == []


def test_what_cannot_be_used_goes_and_what_is_not_ours_stays(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    store = open_store(og.uri)
    derive(og, "whole", table(og))
    derive(og, "unpinned")
    for name in ("empty.arrays", "foreign.arrays", "whole.arrays.tmp-01", "note.txt", "arrays"):
        put(store, f"_derived/links/{name}", b"" if name.startswith("empty") else b"anything")
    clean_up(og, keep=1)
    assert derived(og) == ["arrays", "note.txt", "whole.arrays"]


def test_a_graph_without_derived_files(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    clean_up(og, keep=1)
    assert derived(og) == []
